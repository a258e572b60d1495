/** Calls `tick` again and again until it is disposed of. */
export type Ticker = (tick: () => Promise<void>) => Disposable;

/** Ticks each `ms`, whether or not the tick before has ended. */
export function every(ms: number): Ticker {
  return (tick) => {
    const timer = setInterval(() => void tick(), ms);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  };
}
