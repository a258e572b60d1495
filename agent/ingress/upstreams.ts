import type { RouteOrder } from './ingress.ts';

/** One instance that requests can go to. */
export type Upstream = RouteOrder['upstreams'][number];

/** An upstream that took no connection is left alone for so long, as long as there are others. */
const SHUNNED_MS = 2_000;

/** Takes turns among the upstreams of hostnames; those that just failed come last. `nowMs` is a monotonic clock. */
export class UpstreamTurns {
  readonly #nowMs: () => number;
  readonly #turn = new Map<string, number>();
  readonly #failedAt = new Map<string, number>();

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** The upstreams of a route in the order in which the next request tries them. */
  order({ hostname, upstreams }: RouteOrder): readonly Upstream[] {
    const turn = (this.#turn.get(hostname) ?? 0) % Math.max(1, upstreams.length);
    this.#turn.set(hostname, turn + 1);
    const rotated = [...upstreams.slice(turn), ...upstreams.slice(0, turn)];
    const shunned = (one: Upstream) => this.#nowMs() - (this.#failedAt.get(keyOf(one)) ?? -Infinity) < SHUNNED_MS;
    return [...rotated.filter((one) => !shunned(one)), ...rotated.filter(shunned)];
  }

  /** An upstream took no connection. */
  failed(upstream: Upstream): void {
    this.#failedAt.set(keyOf(upstream), this.#nowMs());
  }

  /** An upstream answered. */
  answered(upstream: Upstream): void {
    this.#failedAt.delete(keyOf(upstream));
  }

  /** Forgets hostnames and upstreams that are served no more. */
  keepOnly(routes: readonly RouteOrder[]): void {
    const hostnames = new Set(routes.map(({ hostname }) => hostname));
    const upstreams = new Set(routes.flatMap((route) => route.upstreams.map(keyOf)));
    for (const hostname of this.#turn.keys()) if (!hostnames.has(hostname)) this.#turn.delete(hostname);
    for (const key of this.#failedAt.keys()) if (!upstreams.has(key)) this.#failedAt.delete(key);
  }
}

function keyOf({ address, port }: Upstream): string {
  return `${address} ${port}`;
}
