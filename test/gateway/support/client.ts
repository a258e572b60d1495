import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import type { TLSSocket } from 'node:tls';

/** What a client trusts and, for mTLS, what it presents. */
export interface Identity {
  readonly ca: string;
  readonly cert?: string;
  readonly key?: string;
  /** The address that it connects from, where it matters. */
  readonly localAddress?: string;
}

/** A whole answer. `reused` says whether it came on a connection that was open before. */
export interface Answered {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: unknown;
  readonly reused: boolean;
  readonly socket: TLSSocket;
}

/** What is sent. A string or Buffer goes as it is, an object as JSON. */
export interface Sent {
  readonly method?: string;
  readonly body?: object | string | Buffer;
  readonly headers?: Record<string, string>;
  readonly agent?: Agent;
  readonly signal?: AbortSignal;
}

/** One exchange; on a connection of its own unless an agent is given. */
export async function exchange(origin: string, path: string, sent: Sent & Partial<Identity>): Promise<Answered> {
  const { method = 'POST', body, headers, agent = false, signal, ca, cert, key, localAddress } = sent;
  const options: RequestOptions = { method, agent, headers: headers ?? {} };
  const asking = request(new URL(path, origin), {
    ...options,
    ...(localAddress === undefined ? {} : { localAddress }),
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(signal === undefined ? {} : { signal }),
  });
  asking.end(typeof body === 'string' || Buffer.isBuffer(body) || body === undefined ? body : JSON.stringify(body));
  // A server that closes early may reset what it has not read; who waits below hears of it, later nobody does.
  asking.on('error', () => undefined);
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  const text = Buffer.concat(await response.toArray()).toString();
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text,
    body: text === '' ? undefined : parsed(text),
    reused: asking.reusedSocket,
    socket: response.socket as TLSSocket,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** An agent's requests on one kept connection. */
export class AgentClient implements Disposable {
  readonly #origin: string;
  readonly #agent: Agent;

  constructor(origin: string, { ca, cert = '', key = '', localAddress }: Identity, maxSockets = 1) {
    this.#origin = origin;
    const from = localAddress === undefined ? {} : { localAddress };
    this.#agent = new Agent({ ca, cert, key, ...from, keepAlive: true, maxSockets, maxCachedSessions: 0 });
  }

  send(path: string, sent: Sent = {}): Promise<Answered> {
    return exchange(this.#origin, path, { ...sent, agent: this.#agent });
  }

  lease(request: object = {}, sent: Sent = {}): Promise<Answered> {
    return this.send('/v1/agent/lease', { ...sent, body: { ...leaseRequest(), ...request } });
  }

  heartbeat(jobId: string, leaseToken: string): Promise<Answered> {
    return this.send(`/v1/agent/jobs/${jobId}/heartbeat`, { body: { lease_token: leaseToken } });
  }

  complete(jobId: string, leaseToken: string, outcome: object = SUCCEEDED): Promise<Answered> {
    return this.send(`/v1/agent/jobs/${jobId}/complete`, { body: { lease_token: leaseToken, ...outcome } });
  }

  [Symbol.dispose](): void {
    this.#agent.destroy();
  }
}

/** A report that kind diagnose_host accepts. */
export const SUCCEEDED = { outcome: 'succeeded', result: { checks: [], duration_ms: 1 } };

/** A lease request of a healthy host. */
export function leaseRequest() {
  return {
    request_id: randomUUID(),
    agent_version: '0.1.0',
    capabilities: {
      kinds: ['diagnose_host'],
      host: {
        cpu_count: 4,
        memory_mb: 8_192,
        data_disk_free_gb: 50,
        kernel: '6.8.0-45-generic',
        docker_version: '27.3.1',
        bridge_netfilter: true,
      },
    },
  };
}

/** The job of a 200. */
export function jobOf(answered: Answered): { id: string; lease_token: string; lease_expires_at: string } {
  const { job } = answered.body as { job: { id: string; lease_token: string; lease_expires_at: string } | null };
  if (answered.status !== 200 || job === null) throw new Error(`no job: ${answered.status} ${answered.text}`);
  return job;
}
