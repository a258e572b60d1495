/** An idempotent call is sent at most so often. Requirement, Provisioning. */
export const MAX_ATTEMPTS = 4;
/** All waiting for the rate limit of one call together, ms; a longer demand ends the call instead. */
export const RATE_LIMIT_BUDGET_MS = 120_000;
/** The project gets one request back each second. Hetzner documentation, "Rate Limiting". */
const REFILL_MS = 1_000;
const FIRST_BACKOFF_MS = 500;
const LONGEST_BACKOFF_MS = 8_000;
/** A reset that lies in the past (a skewed clock) must not become a busy loop. */
const SHORTEST_WAIT_MS = 200;

/** Equal jitter: between half and all of an exponentially growing delay, ms. `failures` counts from 1. */
export function backoffMs(failures: number, random: () => number): number {
  const ceiling = Math.min(FIRST_BACKOFF_MS * 2 ** (failures - 1), LONGEST_BACKOFF_MS);
  return Math.round(ceiling * (0.5 + 0.5 * random()));
}

/**
 * How long to wait after a 429, ms: `Retry-After` where present (seconds or HTTP date, RFC 9110 §10.2.3); else, when nothing remains,
 * until `RateLimit-Reset`, but never longer than one request takes to be refilled: Reset is the moment of FULL recovery, up to an
 * hour away. Without usable headers a back-off of at least a refill. Jitter only lengthens, by at most a quarter.
 */
export function rateLimitDelayMs(headers: Headers, { now, failures, random }: RateLimitContext): number {
  const demanded = retryAfterMs(headers.get('retry-after'), now) ?? untilRefillMs(headers, now);
  const base = demanded ?? Math.max(REFILL_MS, backoffMs(failures, random));
  return Math.round(Math.max(base, SHORTEST_WAIT_MS) * (1 + 0.25 * random()));
}

/** `now` in ms since the UNIX epoch, `failures` how many 429s this call has met, from 1. */
export interface RateLimitContext {
  readonly now: number;
  readonly failures: number;
  readonly random: () => number;
}

function retryAfterMs(value: string | null, now: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value.trim())) return Number(value) * 1_000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - now);
}

function untilRefillMs(headers: Headers, now: number): number | undefined {
  const reset = headers.get('ratelimit-reset');
  if (headers.get('ratelimit-remaining')?.trim() !== '0' || reset === null || !/^\d{1,12}$/.test(reset.trim()))
    return undefined;
  return Math.min(Math.max(0, Number(reset) * 1_000 - now), REFILL_MS);
}
