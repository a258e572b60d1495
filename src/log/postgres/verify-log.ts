import type pg from 'pg';
import { chainHash, GENESIS_HASH } from '../chain.ts';
import { unseal } from '../codec.ts';
import { readRows, type StoredRow } from './reader.ts';

const PAGE = 5_000;

/** The first thing in the log that cannot be as it was written. */
export interface LogFault {
  readonly position: number;
  readonly reason: 'missing' | 'hash_mismatch' | 'column_mismatch' | 'revision_mismatch' | 'unreadable' | 'cut_short';
}

/** How far the log was proved, and what broke it. `hash` is the chain's hash at `position`: to be compared with one kept elsewhere. */
export interface LogVerification {
  readonly position: number;
  readonly hash: string;
  readonly fault: LogFault | undefined;
}

/**
 * Recomputes the chain from the first event over the exact stored bytes and compares the columns with them. An edited, removed or
 * swapped event is named by its position. An end that was cut off shows only against what was folded from it, or a hash kept elsewhere.
 */
export async function verifyLog(pool: pg.Pool): Promise<LogVerification> {
  // Asked first: what is appended while the log is read only makes it longer.
  const folded = await pool.query<{ last: number | null }>('SELECT max(position) AS last FROM fleet.fleet_events');
  const revisions = new Map<string, number>();
  let position = 0;
  let hash = GENESIS_HASH;
  for (;;) {
    const rows = await readRows(pool, { after: position, limit: PAGE });
    for (const row of rows) {
      const reason = faultOf(row, position + 1, hash, revisions);
      if (reason !== undefined) return { position, hash, fault: { position: position + 1, reason } };
      position = row.position;
      hash = row.hash;
    }
    if (rows.length < PAGE) break;
  }
  const cut = (folded.rows[0]?.last ?? 0) > position;
  return { position, hash, fault: cut ? { position: position + 1, reason: 'cut_short' } : undefined };
}

function faultOf(
  row: StoredRow,
  expected: number,
  previousHash: string,
  revisions: Map<string, number>,
): LogFault['reason'] | undefined {
  if (row.position !== expected) return 'missing';
  if (row.hash !== chainHash(previousHash, row.body)) return 'hash_mismatch';
  try {
    const event = unseal(row.position, row.body);
    if (event.stream !== row.stream || event.type !== row.type) return 'column_mismatch';
  } catch {
    return 'unreadable';
  }
  const revision = (revisions.get(row.stream) ?? 0) + 1;
  if (row.revision !== revision) return 'revision_mismatch';
  revisions.set(row.stream, revision);
  return undefined;
}
