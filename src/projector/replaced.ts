import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { isTransient } from '../database/connect.ts';
import { REPLACED_TABLES_LOCK } from '../database/locks.ts';

const PREFIX = 'fleet_replaced_';
const ATTEMPTS = 5;
const LOCK_MS = 200;
const PAUSE_MS = 100;

/** What the schema with this oid is called once another one has taken the name `fleet`. */
export function replacedSchema(oid: number): string {
  return `${PREFIX}${oid}`;
}

/**
 * Drops the tables that rebuilds have replaced, also those that an earlier one had to leave. A transaction that still reads them holds
 * their locks: it is waited for a little, several times, so that nobody queues behind. What cannot be dropped is left for the next
 * rebuild, because the rebuild itself is done.
 */
export async function dropReplaced(pool: pg.Pool): Promise<void> {
  const { rows } = await pool.query<{ nspname: string }>(
    `SELECT nspname FROM pg_namespace WHERE starts_with(nspname, '${PREFIX}') ORDER BY oid`,
  );
  for (const { nspname } of rows) {
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      if (await drop(pool, nspname)) break;
      await delay(PAUSE_MS);
    }
  }
}

/** False when somebody still reads it. */
async function drop(pool: pg.Pool, schema: string): Promise<boolean> {
  try {
    // Several statements at once are one transaction. Two that drop the same schema would find it half gone.
    await pool.query(`
      SET LOCAL lock_timeout = ${LOCK_MS};
      SELECT pg_advisory_xact_lock(${REPLACED_TABLES_LOCK.join(', ')});
      DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    return true;
  } catch (error) {
    if (isTransient(error)) return false;
    // Such as a drop that another user's view forbids: an operator sees the schema, and the rebuild is done all the same.
    if (error instanceof pg.DatabaseError) return true;
    throw error;
  }
}
