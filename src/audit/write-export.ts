import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type FileHandle, link, open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { Writable } from 'node:stream';
import { toExportLine } from '../log/export.ts';
import { type Queryable, readRows, rowPages } from '../log/postgres/reader.ts';
import { type ChainPoint, GENESIS } from '../log/prove.ts';
import { syncFolderOf } from '../pki/atomic-file.ts';

/** Where an export's lines go. */
export interface ExportTarget {
  write(lines: string): Promise<void>;
}

/** What was exported: how many events, and the point of the chain at their end. */
export interface Exported extends ChainPoint {
  readonly from: number;
  readonly events: number;
}

/**
 * Writes the events of positions `from` to `to` as lines, as they lie in the log: whether they are as they were written is for
 * `log verify` to say. Undefined when the log has no event at `from - 1`, which the first line's previous hash is taken from.
 */
export async function exportEvents(
  db: Queryable,
  { from, to }: { from: number; to: number },
  target: ExportTarget,
): Promise<Exported | undefined> {
  const [before] = from === 1 ? [GENESIS] : await readRows(db, { after: from - 2, limit: 1 });
  if (before?.position !== from - 1) return undefined;
  let [events, end]: [number, ChainPoint] = [0, before];
  for await (const page of rowPages(db, from - 1, to)) {
    const lines = page.map((row, i) => `${toExportLine(row, events + i === 0 ? before.hash : undefined)}\n`);
    await target.write(lines.join(''));
    events += page.length;
    end = page.at(-1) ?? end;
  }
  return { from, events, position: end.position, hash: end.hash };
}

/** Writes to a stream, waiting while its reader is slower. Throws the stream's error: EPIPE when its reader has gone. */
export function streamTarget(stream: Writable): ExportTarget {
  return {
    async write(lines) {
      if (stream.errored !== null) throw stream.errored;
      if (!stream.write(lines)) await once(stream, 'drain');
    },
  };
}

/**
 * Writes a file (0600) that is there only when `fill` has succeeded: an export that was cut short would look like a whole one. Throws
 * EEXIST where there is a file of that name, unless it may be replaced.
 */
export async function writeExportFile<T>(
  path: string,
  { replace }: { replace: boolean },
  fill: (target: ExportTarget) => Promise<T>,
): Promise<T> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  const file = await open(temporary, 'wx', 0o600);
  try {
    const filled = await fillFile(file, fill);
    // A link, other than a rename, never replaces what somebody has put there meanwhile.
    if (replace) await rename(temporary, path);
    else await link(temporary, path);
    await syncFolderOf(path);
    return filled;
  } finally {
    await rm(temporary, { force: true });
  }
}

async function fillFile<T>(file: FileHandle, fill: (target: ExportTarget) => Promise<T>): Promise<T> {
  try {
    const filled = await fill({ write: (lines) => file.appendFile(lines) });
    await file.sync();
    return filled;
  } finally {
    await file.close();
  }
}
