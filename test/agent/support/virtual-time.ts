import { setImmediate as turn } from 'node:timers/promises';
import type { Time } from '../../../agent/time.ts';
import { Random } from '../../support/random.ts';

interface Sleeper {
  readonly untilMs: number;
  readonly wake: () => void;
}

/** A clock that jumps from one pause's end to the next, for many programs in one process. It begins at `startMs` of the epoch. */
export class VirtualTime implements Time {
  readonly #random: Random;
  readonly #startMs: number;
  #sleepers: Sleeper[] = [];
  #nowMs = 0;

  constructor(startMs: number, seed = 1) {
    this.#startMs = startMs;
    this.#random = new Random(seed);
  }

  nowMs(): number {
    return this.#nowMs;
  }

  wallMs(): number {
    return this.#startMs + this.#nowMs;
  }

  random(): number {
    return this.#random.next();
  }

  pause(ms: number, signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) return Promise.resolve();
    return new Promise((resolve) => {
      this.#sleepers.push({ untilMs: this.#nowMs + ms, wake: resolve });
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** Lives through the next `ms`: whoever wakes does all it has to do before the clock goes on. */
  async pass(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    for (;;) {
      await turn();
      const nextMs = this.#sleepers.reduce(
        (soonest, { untilMs }) => Math.min(soonest, untilMs),
        Number.POSITIVE_INFINITY,
      );
      this.#nowMs = Math.max(this.#nowMs, Math.min(nextMs, endMs));
      if (nextMs > endMs) return;
      const due = this.#sleepers.filter(({ untilMs }) => untilMs <= this.#nowMs);
      this.#sleepers = this.#sleepers.filter(({ untilMs }) => untilMs > this.#nowMs);
      for (const { wake } of due) wake();
    }
  }
}
