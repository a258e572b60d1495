import { type FileHandle, open, rename, stat } from 'node:fs/promises';

const LARGEST_KEPT_BYTES = 16 * 1024 * 1024;

export interface LogFile {
  file: FileHandle;
  /** Its size when it was opened: what follows was written since. */
  startBytes: number;
}

/** Opens a log to append to (0600); one that has grown past 16 MiB becomes `<path>.1`, in place of the one before. */
export async function openLogFile(path: string): Promise<LogFile> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LARGEST_KEPT_BYTES) await rename(path, `${path}.1`);
  const file = await open(path, 'a', 0o600);
  return { file, startBytes: (await file.stat()).size };
}

/** At most the last ten lines of a log, none from before byte `fromBytes`; empty when there is no log. */
export async function lastLogLines(path: string, fromBytes = 0): Promise<string[]> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return [];
  try {
    const { size } = await file.stat();
    const from = Math.max(fromBytes, size - 16_384);
    const { buffer, bytesRead } = await file.read({ buffer: Buffer.alloc(16_384), position: from });
    const text = buffer.toString('utf8', 0, bytesRead).trimEnd();
    return text === '' ? [] : text.split('\n').slice(-10);
  } finally {
    await file.close();
  }
}

/** How a child process ended. Exactly one of `code` and `signal` is set, neither when it could not be started. */
export interface ProcessExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  lastLogLines: string[];
}

/** The end of a process and its last words, in one line for people. */
export function describeExit({ code, signal, lastLogLines }: ProcessExit): string {
  const how = signal === null ? (code === null ? 'not started' : `exit code ${code}`) : `signal ${signal}`;
  return [how, ...lastLogLines].join('; ');
}
