import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import * as v from 'valibot';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';
import { HttpsJson } from '../../agent/https-json.ts';
import { systemTime } from '../../agent/time.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type Authority, createAuthority } from './support/authority.ts';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let authority: Authority;

beforeAll(async () => {
  folder = await temporaryDirectory();
  authority = await createAuthority(folder.path);
});
afterAll(() => folder[Symbol.asyncDispose]());

/** Asks a server that treats each connection like this, and answers the outcome. */
async function ask(server: Server, caPem = authority.caPem, signal?: AbortSignal) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const https = new HttpsJson(new URL(`https://127.0.0.1:${port}`), { ca: caPem }, systemTime);
  try {
    return await https.exchange({ method: 'GET', path: '/', expect: v.object({ ok: v.literal(true) }), signal });
  } finally {
    await https.close();
    server.close();
  }
}

/** A TLS server that answers any request with these bytes. */
function saying(bytes: string, maxVersion: 'TLSv1.2' | 'TLSv1.3' = 'TLSv1.3'): Server {
  return createTlsServer({ ...authority.server, maxVersion }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', () => socket.end(bytes));
  });
}

const answer = (status: string, body: string, headers = '') =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${Buffer.byteLength(body)}\r\n${headers}\r\n${body}`;

describe('HttpsJson', () => {
  test('200 with what is expected: ok, with the server’s time', async () =>
    expect(await ask(saying(answer('200 OK', '{"ok":true}', 'date: Mon, 30 Nov 2026 12:00:00 GMT\r\n')))).toMatchObject(
      {
        kind: 'ok',
        body: { ok: true },
        time: { serverTimeMs: Date.UTC(2026, 10, 30, 12) },
      },
    ));

  test.each([
    [-1, 'CERT_NOT_YET_VALID', "the gateway's certificate is not valid yet by this host's clock: is it behind?"],
    [3, 'CERT_HAS_EXPIRED', "the gateway's certificate has expired by this host's clock: is it ahead?"],
  ])('a certificate from %i days ago, for a day: the clock is named', async (daysAgo, code, reason) => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const cert = await authority.issue(createCsr('gateway', privateKey), { daysAgo, days: 1 });
    const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
    expect(await ask(createTlsServer({ key, cert }))).toEqual({ kind: 'unreachable', reason: `${code}: ${reason}` });
  });

  test('an error of ours: its code, message and Retry-After', async () =>
    expect(
      await ask(saying(answer('429 X', '{"error":"rate_limited","message":"later"}', 'retry-after: 7\r\n'))),
    ).toMatchObject({
      kind: 'refused',
      refusal: { status: 429, code: 'rate_limited', message: 'later', retryAfterMs: 7_000 },
    }));

  test("a proxy's page: refused without a code", async () =>
    expect(await ask(saying(answer('502 X', '<html>')))).toMatchObject({
      kind: 'refused',
      refusal: { status: 502, code: null, message: 'HTTP 502', retryAfterMs: null },
    }));

  test.each([
    ['200 that is not JSON', answer('200 OK', 'hello')],
    ['200 with something else', answer('200 OK', '{"ok":false}')],
    ['an endless body', `HTTP/1.1 200 OK\r\n\r\n${'x'.repeat(400_000)}`],
    ['half an answer', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"o'],
    ['no HTTP at all', '220 smtp ready\r\n'],
    ['nothing', ''],
  ])('%s: unreachable', async (_, bytes) => expect(await ask(saying(bytes))).toMatchObject({ kind: 'unreachable' }));

  test('TLS 1.2: unreachable', async () =>
    expect(await ask(saying(answer('200 OK', '{"ok":true}'), 'TLSv1.2'))).toMatchObject({ kind: 'unreachable' }));

  test('a server of another CA: unreachable, and it is sent no byte', async () => {
    const stranger = await createAuthority(folder.path, 'Stranger');
    let received = 0;
    const server = createTlsServer(authority.server, (socket) => {
      socket.on('data', (chunk) => (received += chunk.length));
      socket.on('error', () => socket.destroy());
    });
    expect(await ask(server, stranger.caPem)).toMatchObject({ kind: 'unreachable' });
    expect(received).toBe(0);
  });

  test('the own signal: aborted, not unreachable', async () => {
    const stop = new AbortController();
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      stop.abort();
    });
    expect(await ask(server, authority.caPem, stop.signal)).toEqual({ kind: 'aborted' });
    for (const socket of sockets) socket.destroy();
  });
});
