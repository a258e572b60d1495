import type { Time } from './time.ts';

/** First pause after a failure, before jitter. */
const BACKOFF_BASE_MS = 1_000;
/**
 * Longest pause. With a connect timeout of 5 s the next lease comes at most 30 s after the gateway returned,
 * however long it was away (issue 2, acceptance).
 */
export const BACKOFF_MAX_MS = 20_000;

/**
 * Pause before the attempt that follows `failures` failures in a row (1, 2, …): doubling from 1 s to 20 s, jittered to
 * between half and all of it. Jitter never reaches zero, so that a fleet does not fall upon a gateway that has just come back.
 */
export function backoffMs(failures: number, time: Pick<Time, 'random'>): number {
  const full = Math.min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** Math.min(failures - 1, 10));
  return full * (0.5 + time.random() / 2);
}
