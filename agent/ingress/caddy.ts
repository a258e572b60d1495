import { isIPv6 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { request } from 'undici';
import { toBoundedText } from '../../src/protocol/text.ts';
import { GENERATION_HEADER, type Ingress, type IngressBind, type RouteOrder } from './ingress.ts';

/** The one server in Caddy's configuration that is the agent's; all others are left alone. */
const SERVER = '/config/apps/http/servers/pushleft';
const ANSWER_MS = 10_000;
const CONFIG_MAX_BYTES = 16 * 1024 * 1024;

/**
 * A Caddy on the same host, told by its admin API. The whole of the agent's server is compared with what it should be and replaced where
 * it differs, so a Caddy that was started anew with another configuration is told again.
 */
export class CaddyIngress implements Ingress {
  readonly #admin: URL;
  readonly #bind: IngressBind;

  constructor(admin: URL, bind: IngressBind) {
    this.#admin = admin;
    this.#bind = bind;
  }

  async apply(routes: readonly RouteOrder[], signal: AbortSignal): Promise<void> {
    const wanted = serverOf(this.#bind, routes);
    const present = await this.#call('GET', undefined, signal);
    if (isDeepStrictEqual(present, wanted)) return;
    // PUT makes what is not there, with everything above it, and refuses to replace; PATCH is the opposite.
    await this.#call(present === null ? 'PUT' : 'PATCH', wanted, signal);
  }

  /** What Caddy serves goes on without the agent. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  /** What Caddy answers; null for a configuration that has no such server yet. Throws with Caddy's reason. */
  async #call(method: 'GET' | 'PUT' | 'PATCH', value: object | undefined, signal: AbortSignal): Promise<unknown> {
    const deadline = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
    const response = await request(new URL(SERVER, this.#admin), {
      method,
      signal: deadline,
      headers: { 'content-type': 'application/json', origin: this.#admin.origin },
      ...(value === undefined ? {} : { body: JSON.stringify(value) }),
    });
    const text = await boundedText(response.body);
    if (response.statusCode === 200) return text.trim() === '' ? null : JSON.parse(text);
    // Caddy says so of a path of which not even the beginning is there.
    if (method === 'GET' && response.statusCode === 400 && text.includes('invalid traversal path')) return null;
    throw new Error(`Caddy answered ${response.statusCode}: ${toBoundedText(text, 400) ?? 'nothing'}`);
  }
}

function serverOf({ host, port }: IngressBind, routes: readonly RouteOrder[]): object {
  return {
    listen: [dialOf(host, port)],
    automatic_https: { disable: true },
    routes: routes
      .toSorted((a, b) => (a.hostname < b.hostname ? -1 : 1))
      .map(({ hostname, generation, upstreams }) => ({
        match: [{ host: [hostname] }],
        handle: [
          {
            handler: 'reverse_proxy',
            upstreams: upstreams.map(({ address, port: upstreamPort }) => ({ dial: dialOf(address, upstreamPort) })),
            load_balancing: { selection_policy: { policy: 'round_robin' }, try_duration: '2s', try_interval: '50ms' },
            health_checks: { passive: { fail_duration: '2s' } },
            transport: { protocol: 'http', dial_timeout: '1s' },
            headers: { response: { set: { [GENERATION_HEADER]: [String(generation)] } } },
          },
        ],
        terminal: true,
      })),
  };
}

function dialOf(address: string, port: number): string {
  return isIPv6(address) ? `[${address}]:${port}` : `${address}:${port}`;
}

async function boundedText(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.length;
    if (bytes > CONFIG_MAX_BYTES) throw new Error('Caddy answered more than 16 MiB');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
