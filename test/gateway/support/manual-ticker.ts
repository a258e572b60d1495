import type { Ticker } from '../../../src/gateway/ticker.ts';

/** A ticker that ticks when the test says so, and until the tick is done. */
export interface ManualTicker {
  readonly ticker: Ticker;
  tick(): Promise<void>;
}

export function manualTicker(): ManualTicker {
  const ticking = new Set<() => Promise<void>>();
  return {
    ticker: (tick) => {
      ticking.add(tick);
      return { [Symbol.dispose]: () => void ticking.delete(tick) };
    },
    async tick() {
      await Promise.all([...ticking].map((each) => each()));
    },
  };
}
