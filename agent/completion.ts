import type { CompleteRequest, JobFailure } from '../src/protocol/jobs.ts';
import { backoffMs } from './backoff.ts';
import type { Lease } from './gateway-answers.ts';
import type { GatewayClient } from './gateway-client.ts';
import type { Log } from './log.ts';
import { actAfter } from './signals.ts';
import type { Time } from './time.ts';

/** After a stop, this long is spent on handing a result in. */
const HAND_BACK_MS = 5_000;

/** What came of a job's work. */
export type Outcome =
  | { readonly outcome: 'succeeded'; readonly result: unknown }
  | { readonly outcome: 'failed'; readonly result: JobFailure };

/** What handing an outcome in needs. */
export interface CompletionDependencies {
  readonly gateway: () => Pick<GatewayClient, 'complete'>;
  readonly time: Time;
  readonly log: Log;
}

/** How handing a result in ended. */
export type Delivery = 'accepted' | 'conflict' | 'rejected' | 'given_up';

/** Repeats a completion until the gateway has decided, the lease is lost, or the agent must go. */
export async function deliver(
  lease: Lease,
  outcome: Outcome,
  deps: CompletionDependencies,
  lost: AbortSignal,
  stopping: AbortSignal,
): Promise<Delivery> {
  const { time, log } = deps;
  const request: CompleteRequest = { lease_token: lease.token, ...outcome };
  const finished = new AbortController();
  const leaving = new AbortController();
  const timer = actAfter(stopping, HAND_BACK_MS, finished.signal, time, () => leaving.abort());
  try {
    for (let failures = 1; ; failures++) {
      const answer = await deps.gateway().complete(lease.id, request, leaving.signal);
      switch (answer.kind) {
        case 'accepted':
        case 'conflict':
          return answer.kind;
        case 'rejected':
          log.error({ job: lease.id, reason: answer.reason }, 'the gateway does not take the result');
          return answer.kind;
        case 'aborted':
          return 'given_up';
        case 'unauthenticated':
          log.warn({ job: lease.id, code: answer.code }, 'completion not authenticated');
          break;
        case 'undecided':
          log.warn({ job: lease.id, reason: answer.reason }, 'completion not answered');
          break;
      }
      // Once the lease is lost, and after a 401 it is, only an answer on its way could still be good.
      if (lost.aborted && answer.kind === 'unauthenticated') return 'given_up';
      await time.pause(backoffMs(failures, time), leaving.signal);
      if (leaving.signal.aborted) return 'given_up';
    }
  } finally {
    finished.abort();
    await timer;
  }
}
