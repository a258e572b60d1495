import type { Queryable } from '../log/postgres/reader.ts';
import { DECISION_LOCK } from './locks.ts';

/** A database session that holds, or waits for, the decision lock. `transactionMs` is its transaction's age; null: not ours to know. */
export interface LockSession {
  readonly program: string;
  readonly granted: boolean;
  readonly transactionMs: number | null;
}

/** The sessions at the decision lock: whoever holds it first, then whoever waits, longest first. */
export async function readLockSessions(db: Queryable): Promise<LockSession[]> {
  // A bigint advisory key shows in pg_locks as two halves; `objsubid` 1 says that it was one key and not two.
  const { rows } = await db.query<{ program: string | null; granted: boolean; transaction_ms: number | null }>(
    `SELECT a.application_name AS program, l.granted,
            (extract(epoch FROM clock_timestamp() - a.xact_start) * 1000)::bigint AS transaction_ms
     FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
     WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = $1 AND l.objsubid = 1
       AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
     ORDER BY l.granted DESC, a.xact_start`,
    [DECISION_LOCK],
  );
  return rows.map(({ program, granted, transaction_ms }) => ({
    program: program ?? 'unknown',
    granted,
    transactionMs: transaction_ms,
  }));
}
