import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';

/** One request of a load: when it was sent (ms of `performance.now()`), and the body that it was answered with; undefined when it failed. */
export interface Hit {
  readonly at: number;
  readonly body: string | undefined;
}

/** A steady load of HTTP requests to one hostname. `await using` ends it. */
export interface HttpLoad extends AsyncDisposable {
  readonly hits: readonly Hit[];
}

/** How long a client of the load waits for an answer. */
const PATIENCE_MS = 1_000;

/** Sends a request every `everyMs` to an ingress, each on a connection of its own, whether or not those before it were answered. */
export function startHttpLoad(port: number, hostname: string, everyMs: number): HttpLoad {
  const hits: Hit[] = [];
  const stop = new AbortController();
  const pending = new Set<Promise<void>>();
  const hit = async (at: number) => {
    hits.push({ at, body: await get(port, hostname).catch(() => undefined) });
  };
  const sending = (async () => {
    while (!stop.signal.aborted) {
      const at = performance.now();
      const one = hit(at);
      pending.add(one);
      void one.finally(() => pending.delete(one));
      await delay(everyMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  })();
  return {
    hits,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await sending;
      await Promise.all(pending);
    },
  };
}

/** The body of a 200; throws for everything else. */
export async function get(port: number, hostname: string): Promise<string> {
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const asking = request({ host: '127.0.0.1', port, headers: { host: hostname }, agent: false, signal });
  asking.end();
  const [response] = (await once(asking, 'response')) as [IncomingMessage];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  if (response.statusCode !== 200) throw new Error(`answered ${response.statusCode}`);
  return Buffer.concat(chunks).toString();
}

/** How long requests failed: from the first to the last that did, ms; 0 where none did. */
export function errorWindowMs(hits: readonly Hit[]): number {
  const failed = hits.filter(({ body }) => body === undefined).map(({ at }) => at);
  return failed.length === 0 ? 0 : Math.max(...failed) - Math.min(...failed);
}
