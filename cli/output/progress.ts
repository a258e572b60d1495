const INTERVAL_MS = { terminal: 100, lines: 5_000 } as const;

/** Tells how far long work has come. `end` clears a terminal's line. */
export interface ProgressLine {
  readonly update: (text: string) => void;
  readonly end: () => void;
}

/** Progress on standard error: one line rewritten on a terminal, a plain line every few seconds elsewhere, nothing when silent. */
export function progressLine(silent: boolean): ProgressLine {
  const { stderr } = process;
  if (silent) return { update: () => undefined, end: () => undefined };
  const interval = stderr.isTTY ? INTERVAL_MS.terminal : INTERVAL_MS.lines;
  let shownAt = stderr.isTTY ? 0 : performance.now();
  return {
    update(text) {
      if (performance.now() - shownAt < interval) return;
      shownAt = performance.now();
      stderr.write(stderr.isTTY ? `\r\u001B[K${text}` : `${text}\n`);
    },
    end: () => (stderr.isTTY ? void stderr.write('\r\u001B[K') : undefined),
  };
}
