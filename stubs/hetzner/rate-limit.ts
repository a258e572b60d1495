/** Size and refill of the bucket that each token has. */
export interface RateLimit {
  /** Requests in a full bucket: what `RateLimit-Limit` says. */
  readonly limit: number;
  readonly refillPerSecond: number;
}

/** The API's default: 3,600 an hour, one back each second. */
export const DEFAULT_RATE_LIMIT: RateLimit = { limit: 3600, refillPerSecond: 1 };

/** What one request got out of its bucket. */
interface RateLimitReading {
  readonly admitted: boolean;
  readonly headers: Readonly<Record<string, string>>;
}

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

/** Token buckets, one for each bearer token, that fill up continuously. */
export class RateLimiter {
  readonly #rate: RateLimit;
  readonly #buckets = new Map<string, Bucket>();

  constructor(rate: RateLimit) {
    this.#rate = rate;
  }

  /**
   * Takes one request out of the bucket of `token`. A request that finds less than one in it is not admitted and takes
   * nothing. `RateLimit-Reset` is the UNIX time at which the bucket will be FULL again, as the API documents it.
   */
  take(token: string, nowMs: number): RateLimitReading {
    const { limit, refillPerSecond } = this.#rate;
    const bucket = this.#buckets.get(token) ?? { tokens: limit, filledAtMs: nowMs };
    const refilled = (Math.max(0, nowMs - bucket.filledAtMs) / 1000) * refillPerSecond;
    const available = Math.min(limit, bucket.tokens + refilled);
    const admitted = available >= 1;
    const tokens = admitted ? available - 1 : available;
    this.#buckets.set(token, { tokens, filledAtMs: nowMs });
    const fullAtMs = nowMs + ((limit - tokens) / refillPerSecond) * 1000;
    return {
      admitted,
      headers: {
        'RateLimit-Limit': String(limit),
        'RateLimit-Remaining': String(Math.floor(tokens)),
        'RateLimit-Reset': String(Math.ceil(fullAtMs / 1000)),
      },
    };
  }
}
