import { backoffMs } from './backoff.ts';
import type { Lease } from './gateway-answers.ts';
import type { GatewayClient } from './gateway-client.ts';
import type { Log } from './log.ts';
import type { Time } from './time.ts';

/** Heartbeats come at least this often, however long the lease: they are the node's sign of life (90 s, DESIGN §5). */
const HEARTBEAT_MAX_MS = 30_000;

/** Why a lease is no longer held; `abandoned` is the agent's own doing. */
export type LeaseLoss = 'conflict' | 'unauthenticated' | 'expired' | 'abandoned';

/** What keeping a lease needs. */
export interface HeartbeatDependencies {
  /** The client of now: a renewal may replace it while the job runs. */
  readonly gateway: () => Pick<GatewayClient, 'heartbeat'>;
  readonly time: Time;
  readonly log: Log;
}

/**
 * Extends a lease at a third of what is left of it until `finished` is aborted (answers undefined) or the lease is lost.
 * Lost means: the gateway said so (409, 401), or it was not reached before the lease's end by the monotonic clock.
 */
export async function keepLease(
  lease: Lease,
  { gateway, time, log }: HeartbeatDependencies,
  finished: AbortSignal,
): Promise<LeaseLoss | undefined> {
  let endsAtMs = lease.endsAtMs;
  let failures = 0;
  while (!finished.aborted) {
    const leftMs = endsAtMs - time.nowMs();
    if (leftMs <= 0) return 'expired';
    const pauseMs = failures === 0 ? Math.min(leftMs / 3, HEARTBEAT_MAX_MS) : backoffMs(failures, time);
    await time.pause(Math.min(pauseMs, leftMs), finished);
    if (finished.aborted) break;
    if (time.nowMs() >= endsAtMs) return 'expired';
    const answer = await withDeadline(endsAtMs, time, finished, (signal) => gateway().heartbeat(lease, signal));
    switch (answer.kind) {
      case 'extended':
        endsAtMs = answer.endsAtMs;
        failures = 0;
        break;
      case 'undecided':
        failures += 1;
        log.warn({ job: lease.id, reason: answer.reason }, 'heartbeat not answered');
        break;
      case 'aborted':
        // By the deadline or by the end of the work; the loop's head tells which.
        break;
      case 'conflict':
      case 'unauthenticated':
        return answer.kind;
    }
  }
  return undefined;
}

/** Runs one request with a signal that ends with the work or with the lease, whichever is first. */
async function withDeadline<T>(
  endsAtMs: number,
  time: Time,
  finished: AbortSignal,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const over = new AbortController();
  const answered = new AbortController();
  const timer = time
    .pause(endsAtMs - time.nowMs(), AbortSignal.any([finished, answered.signal]))
    .then(() => over.abort());
  try {
    return await request(AbortSignal.any([finished, over.signal]));
  } finally {
    answered.abort();
    await timer;
  }
}
