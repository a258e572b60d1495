import type pg from 'pg';
import { DISPOSABLE, projectionOf } from '../../projections/registry.ts';
import { grantStatements } from '../database/grants.ts';
import { DECISION_LOCK } from '../database/locks.ts';
import { readForFold } from '../log/postgres/reader.ts';
import { startCopy } from './copy.ts';
import { foldLog, type Progress } from './fold-log.ts';
import { FoldState } from './fold-state.ts';
import { createSchema, indexSchema } from './schema.ts';

/** What a rebuild did. */
export interface RebuildReport {
  readonly position: number;
  readonly milliseconds: number;
  readonly rows: Readonly<Record<string, number>>;
}

/**
 * Folds the whole log into fresh tables and puts them in the place of the live ones, in one transaction that holds the decision lock:
 * commands wait for it, readers do not notice. Killed at any point it leaves the live tables alone and can be run again.
 * Rows that never change again go out by COPY while the log is still being read; keys and indexes follow when the tables are full.
 */
export async function rebuild(pool: pg.Pool, progress?: Progress): Promise<RebuildReport> {
  const started = performance.now();
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query('SET LOCAL idle_in_transaction_session_timeout = 0');
    await client.query('SET LOCAL statement_timeout = 0');
    await client.query('SET LOCAL lock_timeout = 0');
    // Indexes of a long log are sorted in memory, not on disk.
    await client.query(`SET LOCAL maintenance_work_mem = '256MB'`);
    await client.query(`SELECT pg_advisory_xact_lock(${DECISION_LOCK})`);
    for (const statement of ['DROP SCHEMA IF EXISTS fleet_next CASCADE', ...createSchema('fleet_next')]) {
      await client.query(statement);
    }
    const { position, rows } = await fill(pool, client, progress);
    for (const statement of indexSchema('fleet_next')) await client.query(statement);
    await client.query('DROP SCHEMA IF EXISTS fleet CASCADE');
    await client.query('ALTER SCHEMA fleet_next RENAME TO fleet');
    for (const statement of grantStatements()) await client.query(statement);
    await client.query('COMMIT');
    await client.query('ANALYZE');
    return { position, milliseconds: Math.round(performance.now() - started), rows };
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}

async function fill(pool: pg.Pool, client: pg.ClientBase, progress: Progress | undefined) {
  const rows: Record<string, number> = {};
  const stream = startCopy(client, 'fleet_next', 'fleet_events');
  const state = new FoldState(DISPOSABLE, (table, row) => {
    rows[table] = (rows[table] ?? 0) + 1;
    stream.write(row);
  });
  const read = async (page: Parameters<typeof readForFold>[1]) => {
    await stream.drained();
    return readForFold(pool, page);
  };
  try {
    await foldLog({ read }, state, 'head', progress);
  } finally {
    await stream.end();
  }
  for (const name of DISPOSABLE) {
    if (projectionOf(name).table.appendOnly === true) continue;
    const copy = startCopy(client, 'fleet_next', name);
    let written = 0;
    for (const row of state.rows(name).values()) {
      copy.write(row);
      written += 1;
      if (written % 1_000 === 0) await copy.drained();
    }
    await copy.end();
    rows[name] = written;
  }
  return { position: state.position, rows };
}
