import { addressKey } from './address-key.ts';
import { type Rate, TokenBucket, TokenBuckets } from './token-bucket.ts';

/** How much enrolment a gateway bears. */
export interface EnrollRates {
  /** Of one address (IPv4) or one /64 (IPv6), whatever it asks. */
  readonly perAddress: Rate;
  /** Of everybody together. */
  readonly shared: Rate;
  /** Beyond that, for node ids that are awaited: strangers cannot use it up. */
  readonly reserve: Rate;
  /** Of one awaited node id, so that a known id cannot use up the reserve of the others. */
  readonly perAwaitedNode: Rate;
}

/** A fleet may grow by a pool at once from behind one address; a stranger's guesses stay far below what a secret's 256 bits bear. */
export const ENROLL_RATES: EnrollRates = {
  perAddress: { perSecond: 5, burst: 60 },
  shared: { perSecond: 50, burst: 200 },
  reserve: { perSecond: 20, burst: 100 },
  perAwaitedNode: { perSecond: 1, burst: 10 },
};

const MOST_ADDRESSES = 20_000;
const MOST_NODES = 10_000;

/** The rate limits of the enrolment listener; none of them looks at the database. */
export class EnrollLimits {
  readonly #addresses: TokenBuckets;
  readonly #shared: TokenBucket;
  readonly #reserve: TokenBucket;
  readonly #nodes: TokenBuckets;
  readonly #isAwaited: (nodeId: string) => boolean;

  /** `isAwaited` answers from memory. */
  constructor(rates: EnrollRates, isAwaited: (nodeId: string) => boolean, now?: () => number) {
    this.#addresses = new TokenBuckets(rates.perAddress, MOST_ADDRESSES, now);
    this.#shared = new TokenBucket(rates.shared, now);
    this.#reserve = new TokenBucket(rates.reserve, now);
    this.#nodes = new TokenBuckets(rates.perAwaitedNode, MOST_NODES, now);
    this.#isAwaited = isAwaited;
  }

  /** Asked first, before the body is read. */
  admitsAddress(address: string): boolean {
    return this.#addresses.take(addressKey(address));
  }

  /** Asked when the body is known, before anything is done about it. */
  admitsNode(nodeId: string): boolean {
    if (this.#shared.take()) return true;
    return this.#isAwaited(nodeId) && this.#nodes.take(nodeId) && this.#reserve.take();
  }
}
