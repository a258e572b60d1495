import type pg from 'pg';
import { chainHash, GENESIS_HASH } from '../chain.ts';
import { readEnvelope, toRecordedEvent } from '../codec.ts';
import { LogFormatError } from '../event-log.ts';
import { readRows, type StoredRow } from './reader.ts';

const PAGE = 5_000;

/** The first thing in the log that cannot be as it was written, or that this program is too old to read. */
export interface LogFault {
  readonly position: number;
  readonly reason: Damage | 'cut_short' | 'newer_program';
}

type Damage = 'missing' | 'hash_mismatch' | 'column_mismatch' | 'revision_mismatch' | 'unreadable';

/** How far the log was proved, and what broke it. `hash` is the chain's hash at `position`: to be compared with one kept elsewhere. */
export interface LogVerification {
  readonly position: number;
  readonly hash: string;
  readonly fault: LogFault | undefined;
}

/**
 * Recomputes the chain from the first event over the exact stored bytes and compares the columns with them. An edited, removed or
 * swapped event is named by its position. An end that was cut off shows only against what was folded from it, or a hash kept elsewhere.
 * Events of a newer program are proved like all others; the first is named when nothing is wrong.
 */
export async function verifyLog(pool: pg.Pool, progress?: (position: number) => void): Promise<LogVerification> {
  // Asked first: what is appended while the log is read only makes it longer.
  const folded = await pool.query<{ last: number | null }>('SELECT max(position) AS last FROM fleet.fleet_events');
  const revisions = new Map<string, number>();
  let position = 0;
  let hash = GENESIS_HASH;
  let newer: LogFault | undefined;
  for (;;) {
    const rows = await readRows(pool, { after: position, limit: PAGE });
    for (const row of rows) {
      const reason = proveRow(row, position + 1, hash, revisions);
      if (reason === 'newer_program') newer ??= { position: row.position, reason };
      else if (reason !== undefined) return { position, hash, fault: { position: position + 1, reason } };
      position = row.position;
      hash = row.hash;
    }
    progress?.(position);
    if (rows.length < PAGE) break;
  }
  const cut = (folded.rows[0]?.last ?? 0) > position;
  return { position, hash, fault: cut ? { position: position + 1, reason: 'cut_short' } : newer };
}

function proveRow(
  row: StoredRow,
  expected: number,
  previousHash: string,
  revisions: Map<string, number>,
): Damage | 'newer_program' | undefined {
  if (row.position !== expected) return 'missing';
  if (row.hash !== chainHash(previousHash, row.body)) return 'hash_mismatch';
  const read = readRow(row);
  if (read === 'column_mismatch' || read === 'unreadable') return read;
  const revision = (revisions.get(row.stream) ?? 0) + 1;
  if (row.revision !== revision) return 'revision_mismatch';
  revisions.set(row.stream, revision);
  return read;
}

function readRow({ position, stream, type, at, body }: StoredRow): Damage | 'newer_program' | undefined {
  try {
    const envelope = readEnvelope(position, body);
    if (envelope.stream !== stream || envelope.type !== type || envelope.at !== at) return 'column_mismatch';
    toRecordedEvent(position, envelope);
    return undefined;
  } catch (error) {
    return error instanceof LogFormatError && error.kind === 'newer_program' ? 'newer_program' : 'unreadable';
  }
}
