import type pg from 'pg';
import { DECISION_LOCK } from '../database/locks.ts';
import type { Queryable } from '../log/postgres/reader.ts';

/** A connection in a transaction that holds the decision lock. */
export type LockedSession = Queryable;

/** What long work on one connection needs: no limit of its session ends it, and indexes are sorted in memory, not on disk. */
const SETTINGS = [
  'SET LOCAL idle_in_transaction_session_timeout = 0',
  'SET LOCAL statement_timeout = 0',
  'SET LOCAL lock_timeout = 0',
  `SET LOCAL maintenance_work_mem = '256MB'`,
];

/**
 * Runs `work` in one transaction that holds the decision lock: commands wait, and so does whoever else changes the fleet's tables.
 * Killed at any point it leaves everything as it was. A connection that could not be rolled back does not go back to the pool.
 */
export async function underDecisionLock<T>(pool: pg.Pool, work: (client: LockedSession) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query('BEGIN');
    for (const setting of SETTINGS) await client.query(setting);
    await client.query(`SELECT pg_advisory_xact_lock(${DECISION_LOCK})`);
    const done = await work(client);
    await client.query('COMMIT');
    return done;
  } catch (error) {
    await client.query('ROLLBACK').catch((cause: Error) => {
      broken = cause;
    });
    throw error;
  } finally {
    client.release(broken);
  }
}
