import type { PassReport } from '../pass.ts';

/** How many rows a step reads at once, and how many changes it makes in one pass before it leaves the rest to the next. */
export const PAGE = 1_000;

/** Answers at most `limit` rows, in the order of their age, and none whose key is among `seen`. */
type ReadPage<T> = (seen: readonly string[], limit: number) => Promise<readonly T[]>;

/**
 * Does a step about everything that it has to look at, page by page. What nobody can move on now (no node has room, a host is away) is
 * looked at once a pass and left out of the next page: however much of it there is, it never stands in front of what can be moved on.
 */
export async function inPages<T>(
  limit: number,
  read: ReadPage<T>,
  keyOf: (row: T) => string,
  act: (rows: readonly T[]) => Promise<PassReport>,
): Promise<PassReport> {
  const seen: string[] = [];
  const report = {
    done: 0,
    refused: [] as PassReport['refused'][number][],
    failed: [] as PassReport['failed'][number][],
  };
  for (;;) {
    const rows = await read(seen, limit);
    if (rows.length > 0) {
      const { done, refused, failed } = await act(rows);
      report.done += done;
      report.refused.push(...refused);
      report.failed.push(...failed);
    }
    const superseded = report.refused.some(({ refusal }) => refusal.code === 'term_superseded');
    if (rows.length < limit || report.done >= limit || superseded) return report;
    for (const row of rows) seen.push(keyOf(row));
  }
}
