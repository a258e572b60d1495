import { setTimeout as delay } from 'node:timers/promises';

/** What the agent needs of time and chance, so that tests can stand in for both. */
export interface Time {
  /** Monotonic milliseconds; a wrong or jumping wall clock does not move it. */
  nowMs(): number;
  /** The host's wall clock, epoch milliseconds, which may be wrong: only to be compared with the gateway's. */
  wallMs(): number;
  /** Resolves after `ms`, or at once when `signal` is aborted; never rejects. */
  pause(ms: number, signal?: AbortSignal): Promise<void>;
  /** Uniform in [0, 1). */
  random(): number;
}

/** The machine's own. */
export const systemTime: Time = {
  nowMs: () => performance.now(),
  wallMs: Date.now,
  pause: (ms, signal) => delay(ms, undefined, signal === undefined ? {} : { signal }).catch(() => undefined),
  random: Math.random,
};
