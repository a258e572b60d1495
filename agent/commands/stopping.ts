/** Aborted at the first SIGTERM or SIGINT. A second one ends the process at once, as if nobody had listened. */
export function stopOnSignals(): AbortSignal {
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.abort(signal));
  return stopping.signal;
}
