import { once } from 'node:events';
import { type Server as HttpServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http';
import type { Server as HttpsServer, ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { SecureContextOptions } from 'node:tls';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';
import type { PkiSet } from '../pki/pki-set.ts';
import { type Answer, problem, toResponse } from './answer.ts';
import type { BindAddress } from './config.ts';
import type { PkiHolder } from './pki-holder.ts';

/** A listening server: its address, and an end that lets answers under way finish. */
export interface Listener {
  readonly url: string;
  readonly port: number;
  close(): Promise<void>;
}

/** A setting with which the gateway cannot start; the message is one line that names it. */
export class GatewayConfigurationError extends Error {
  override readonly name = 'GatewayConfigurationError';
}

/** How long answers under way may take when the gateway stops. */
const CLOSE_MS = 5_000;

/**
 * TLS 1.3 without resumption, and limits that a slow or greedy client meets early: a whole request within 10 s, headers within 5 s and
 * of at most 8 KiB. Requests that wait for a job are received already, so the limits do not touch them.
 */
export const TLS_SERVER_OPTIONS = {
  minVersion: 'TLSv1.3',
  // No ticket carries a trust or an identity on that has changed (DESIGN §8); no resumeSession listener, so no session either.
  secureOptions: 0x4000, // SSL_OP_NO_TICKET
  handshakeTimeout: 5_000,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  connectionsCheckingInterval: 1_000,
  keepAliveTimeout: 75_000,
  maxHeaderSize: 8 * 1024,
} as const satisfies ServerOptions;

/**
 * Has every handshake that begins after a change of the PKI files use the new ones. Connections keep what they were made with. A context
 * is made from nothing, so it is given the protocol's options again, without which it would hand out tickets.
 */
export function followPki(server: HttpsServer, pki: PkiHolder, optionsOf: (set: PkiSet) => SecureContextOptions): void {
  pki.follow((set) => server.setSecureContext({ ...TLS_SERVER_OPTIONS, ...optionsOf(set) }));
}

/** A hono app as node's server calls it. A target or Host header that makes no URL fails before any route: 400. */
export function requestListener(app: Hono): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  const errorHandler = () => toResponse({ ...problem('invalid_request'), close: true });
  const answer = getRequestListener(app.fetch, { errorHandler });
  return (incoming, outgoing) => void answer(incoming, outgoing);
}

/** Listens; `variable` names the setting in the error when the address cannot be had. */
export async function listen(
  server: HttpServer | HttpsServer,
  bind: BindAddress,
  { variable, scheme }: { variable: string; scheme: 'http' | 'https' },
): Promise<Listener> {
  server.maxHeadersCount = 50;
  server.on('clientError', answerMalformed);
  server.listen(bind.port, bind.host);
  try {
    await once(server, 'listening');
  } catch (cause) {
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    throw new GatewayConfigurationError(`${variable} cannot be listened on (${reason})`, { cause });
  }
  const { port, family } = server.address() as AddressInfo;
  const host = family === 'IPv6' ? `[${bind.host}]` : bind.host;
  return { url: `${scheme}://${host}:${port}`, port, close: () => close(server) };
}

const MALFORMED = toRawHttp(problem('invalid_request'));

/** What is no HTTP at all is answered like any other bad request, as far as anyone still listens. */
function answerMalformed(_: Error, socket: Duplex): void {
  if (socket.writable) socket.end(MALFORMED);
  else socket.destroy();
}

function toRawHttp({ status, text }: Answer): string {
  const headers = `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close`;
  return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${headers}\r\n\r\n${text}`;
}

/** Answers under way are waited for, then what is left is cut off. */
async function close(server: HttpServer | HttpsServer): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
  await closed;
  clearTimeout(timer);
}
