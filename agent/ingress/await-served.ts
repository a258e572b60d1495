import { isIPv6 } from 'node:net';
import { request } from 'undici';
import { JobFailed } from '../job-runner.ts';
import type { Time } from '../time.ts';
import { GENERATION_HEADER, type IngressBind, type RouteOrder } from './ingress.ts';

/** How long a route may take until a request gets through it. */
const SERVED_MS = 15_000;
const LOOK_MS = 100;
const ANSWER_MS = 2_000;

/**
 * Resolves once a request for the hostname, sent through the ingress as a client sends it, was answered by an instance of this generation:
 * whatever it answered. Throws JobFailed `not_ready` when none is, and what the signal was aborted with.
 */
export async function awaitServed(
  bind: IngressBind,
  { hostname, generation }: RouteOrder,
  time: Time,
  signal: AbortSignal,
): Promise<void> {
  const deadline = time.nowMs() + SERVED_MS;
  for (;;) {
    signal.throwIfAborted();
    if ((await generationServed(bind, hostname, signal)) === String(generation)) return;
    if (time.nowMs() >= deadline) throw new JobFailed('not_ready', 'no instance answers through the ingress');
    await time.pause(LOOK_MS, signal);
  }
}

async function generationServed(
  { host, port }: IngressBind,
  hostname: string,
  signal: AbortSignal,
): Promise<string | undefined> {
  try {
    const response = await request(`http://${localOf(host)}:${port}/`, {
      headers: { host: hostname },
      signal: AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]),
    });
    await response.body.dump();
    const generation = response.headers[GENERATION_HEADER];
    return typeof generation === 'string' ? generation : undefined;
  } catch {
    return undefined;
  }
}

/** An address of this host at which what is bound to another one, or to all, listens. */
function localOf(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  if (host === '::') return '[::1]';
  return isIPv6(host) ? `[${host}]` : host;
}
