const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs work that has no end of its own. Ctrl-C, SIGTERM, and a reader of our output that has gone (`| head`) abort the signal; then
 * the work is awaited, so that it leaves nothing open. A second signal ends the process as usual.
 */
export async function untilStopped(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const stopping = new AbortController();
  const stop = () => {
    for (const signal of SIGNALS) process.removeListener(signal, stop);
    stopping.abort();
  };
  for (const signal of SIGNALS) process.on(signal, stop);
  process.stdout.on('error', stop);
  try {
    await work(stopping.signal);
  } finally {
    stop();
    process.stdout.removeListener('error', stop);
  }
}
