import type { NodeLiveness } from './node/state.ts';
import type { SchedulerState } from './scheduler/state.ts';

/** A node takes new work when it was heard within this time (requirement: the schedulers' 60 s freshness rule). */
export const FRESH_MS = 60_000;

/**
 * How long a node could have been heard and was not, ms, by the clock of silence. Undefined where that is not known: telemetry was lost,
 * or nothing was written yet. Unknown is never silent.
 */
export function silentMs(
  liveness: NodeLiveness | undefined,
  scheduler: Pick<SchedulerState, 'heard_ms'> | undefined,
): number | undefined {
  if (liveness?.heard_ms === undefined || liveness.heard_ms === null || scheduler === undefined) return undefined;
  return Math.max(0, scheduler.heard_ms - liveness.heard_ms);
}

/** Whether a node was heard lately. One of which nothing is known was not. */
export function isFresh(
  liveness: NodeLiveness | undefined,
  scheduler: Pick<SchedulerState, 'heard_ms'> | undefined,
): boolean {
  const silent = silentMs(liveness, scheduler);
  return silent !== undefined && silent <= FRESH_MS;
}
