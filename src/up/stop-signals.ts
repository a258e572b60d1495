/** What Ctrl-C, SIGTERM and a closed terminal ask of `up`. */
export interface StopSignals {
  /** Settles with the first signal. */
  first: Promise<NodeJS.Signals>;
  /** Gives the signals back to Node's default, which ends the process. */
  release(): void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** The first signal asks for an orderly stop, any later one calls `force`: who presses Ctrl-C twice does not want to wait. */
export function listenForStopSignals(force: (signal: NodeJS.Signals) => void): StopSignals {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  let asked = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (asked) force(signal);
    asked = true;
    resolve(signal);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    first: promise,
    release() {
      for (const signal of SIGNALS) process.removeListener(signal, onSignal);
    },
  };
}
