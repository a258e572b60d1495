/** How fast something may go on, and how much of it at once. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** One token bucket. `now` is a monotonic clock in ms. */
export class TokenBucket {
  readonly #buckets: TokenBuckets;

  constructor(rate: Rate, now?: () => number) {
    this.#buckets = new TokenBuckets(rate, 1, now);
  }

  /** Takes a token if there is one. */
  take(): boolean {
    return this.#buckets.take('');
  }
}

/**
 * A token bucket for each key, for at most `most` keys: beyond that the one touched longest ago is forgotten, which gives its key a
 * full bucket again. Whoever can make up so many keys is bounded by the bucket that all share.
 */
export class TokenBuckets {
  readonly #rate: Rate;
  readonly #most: number;
  readonly #now: () => number;
  readonly #buckets = new Map<string, Bucket>();

  constructor(rate: Rate, most: number, now: () => number = () => performance.now()) {
    this.#rate = rate;
    this.#most = most;
    this.#now = now;
  }

  /** How many keys are remembered. */
  get size(): number {
    return this.#buckets.size;
  }

  /** Takes a token of a key if it has one. */
  take(key: string): boolean {
    const atMs = this.#now();
    const known = this.#buckets.get(key);
    const { perSecond, burst } = this.#rate;
    const refilled = known === undefined ? burst : known.tokens + ((atMs - known.atMs) / 1_000) * perSecond;
    const tokens = Math.min(burst, refilled);
    const taken = tokens >= 1;
    this.#buckets.delete(key);
    this.#buckets.set(key, { tokens: taken ? tokens - 1 : tokens, atMs });
    if (this.#buckets.size > this.#most) {
      const [oldest] = this.#buckets.keys();
      if (oldest !== undefined) this.#buckets.delete(oldest);
    }
    return taken;
  }
}
