import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { isIPv6, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { createProxyServer } from 'httpxy';
import { GENERATION_HEADER, type Ingress, type IngressBind, type RouteOrder } from './ingress.ts';
import { type Upstream, UpstreamTurns } from './upstreams.ts';

/** An instance that has not begun to answer after this is given up. */
const ANSWER_MS = 60_000;
/** A client has so long to send its headers. */
const HEADERS_MS = 15_000;
/** Connections kept to one instance. */
const MOST_SOCKETS = 256;
/** Failures to connect: nothing of the request has reached anybody. */
const UNREACHED: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT']);

/**
 * A small reverse proxy in the agent's own process, for hosts without Caddy: HTTP/1.1 and WebSockets, no TLS. Requests go to the
 * instances of their hostname in turn; one that takes no connection is passed over where the request has no body.
 */
export class EmbeddedIngress implements Ingress {
  readonly #bind: IngressBind;
  readonly #server: Server;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: MOST_SOCKETS });
  readonly #answerMs: number;
  readonly #proxy: ReturnType<typeof createProxyServer>;
  readonly #turns = new UpstreamTurns();
  #routes: ReadonlyMap<string, RouteOrder> = new Map();

  constructor(bind: IngressBind, answerMs = ANSWER_MS) {
    this.#bind = bind;
    this.#answerMs = answerMs;
    this.#proxy = createProxyServer({ xfwd: true, proxyTimeout: answerMs, agent: this.#agent });
    this.#server = createServer({ headersTimeout: HEADERS_MS, requireHostHeader: true }, (request, response) => {
      void this.#answer(request, response);
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      void this.#upgrade(request, socket, head);
    });
  }

  /** Also begins to listen, the first time and whenever that has failed. Throws when the address is taken. */
  async apply(routes: readonly RouteOrder[]): Promise<void> {
    this.#routes = new Map(routes.map((route) => [route.hostname, route]));
    this.#turns.keepOnly(routes);
    if (this.#server.listening) return;
    const { host, port } = this.#bind;
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    if (!this.#server.listening) return;
    this.#server.close();
    this.#server.closeAllConnections();
    await once(this.#server, 'close');
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const route = this.#routeOf(request);
    if (route === undefined) return refuse(response, 404, 'no such hostname here');
    response.setHeader(GENERATION_HEADER, String(route.generation));
    const askedAtMs = performance.now();
    const error = await this.#forward(route, request, response);
    if (error === undefined) return;
    // Somebody has begun to answer: the client sees a connection that breaks off.
    if (response.headersSent) return void response.destroy();
    response.removeHeader(GENERATION_HEADER);
    const late = performance.now() - askedAtMs >= this.#answerMs;
    return late ? refuse(response, 504, 'the instance does not answer') : refuse(response, 502, 'no instance answers');
  }

  /** Undefined when the request was answered, else what the last instance failed with. */
  async #forward(route: RouteOrder, request: IncomingMessage, response: ServerResponse): Promise<Error | undefined> {
    const hasBody = 'content-length' in request.headers || 'transfer-encoding' in request.headers;
    let failure: Error | undefined;
    for (const upstream of this.#turns.order(route)) {
      // A stream that has ended cannot be sent twice; one that is empty can.
      const body = hasBody ? {} : { buffer: Readable.from([]) };
      try {
        await this.#proxy.web(request, response, { target: urlOf(upstream, 'http'), ...body });
        this.#turns.answered(upstream);
        return undefined;
      } catch (error) {
        failure = error instanceof Error ? error : new Error(String(error));
        const unreached = UNREACHED.has(codeOf(failure) ?? '');
        if (unreached) this.#turns.failed(upstream);
        if (!unreached || hasBody || response.headersSent) return failure;
      }
    }
    return failure;
  }

  async #upgrade(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const route = this.#routeOf(request);
    const [upstream] = route === undefined ? [] : this.#turns.order(route);
    if (upstream === undefined) return void socket.end('HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n');
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      return void socket.end('HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\n\r\n');
    }
    try {
      await this.#proxy.ws(request, socket, { target: urlOf(upstream, 'ws') }, head);
    } catch {
      socket.destroy();
    }
  }

  #routeOf({ headers: { host = '' } }: IncomingMessage): RouteOrder | undefined {
    return this.#routes.get(host.toLowerCase().replace(/\.?(?::\d{1,5})?$/, ''));
  }
}

function urlOf({ address, port }: Upstream, scheme: 'http' | 'ws'): string {
  return `${scheme}://${isIPv6(address) ? `[${address}]` : address}:${port}`;
}

function codeOf(error: Error): string | undefined {
  return 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

function refuse(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, { 'content-type': 'text/plain', connection: 'close' });
  response.end(`${text}\n`);
}
