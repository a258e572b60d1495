import type pg from 'pg';
import { DISPOSABLE, projectionOf } from '../../projections/registry.ts';
import { projectionGrants } from '../database/grants.ts';
import { readForFold } from '../log/postgres/reader.ts';
import { startCopy } from './copy.ts';
import { foldLog, type Progress } from './fold-log.ts';
import { FoldState } from './fold-state.ts';
import { dropReplaced, replacedSchema } from './replaced.ts';
import { createSchema, indexSchema } from './schema.ts';
import { type LockedSession, underDecisionLock } from './under-lock.ts';

/** What a rebuild did. */
export interface RebuildReport {
  readonly position: number;
  readonly milliseconds: number;
  readonly rows: Readonly<Record<string, number>>;
}

/**
 * Folds the whole log into fresh tables and puts them in the place of the live ones, in one transaction that holds the decision lock:
 * commands wait for it, readers do not notice. Killed at any point it leaves the live tables alone and can be run again.
 */
export async function rebuild(pool: pg.Pool, progress?: Progress): Promise<RebuildReport> {
  const started = performance.now();
  const built = await underDecisionLock(pool, (client) => replaceProjections(pool, client, progress));
  await dropReplaced(pool);
  return { ...built, milliseconds: Math.round(performance.now() - started) };
}

/**
 * The part of a rebuild that happens in a transaction under the decision lock; `client` is in it, the log is read through `pool`.
 * Rows that never change again go out by COPY while the log is still being read; keys and indexes follow when the tables are full.
 * The swap renames schemas, which waits for no reader of the tables in them; {@link dropReplaced} drops the old ones after the commit.
 */
export async function replaceProjections(
  pool: pg.Pool,
  client: LockedSession,
  progress?: Progress,
): Promise<Omit<RebuildReport, 'milliseconds'>> {
  for (const statement of ['DROP SCHEMA IF EXISTS fleet_next CASCADE', ...createSchema('fleet_next')]) {
    await client.query(statement);
  }
  const built = await fill(pool, client, progress);
  for (const statement of indexSchema('fleet_next')) await client.query(statement);
  const { rows } = await client.query<{ oid: number }>(`SELECT oid FROM pg_namespace WHERE nspname = 'fleet'`);
  for (const { oid } of rows) await client.query(`ALTER SCHEMA fleet RENAME TO ${replacedSchema(oid)}`);
  await client.query('ALTER SCHEMA fleet_next RENAME TO fleet');
  for (const statement of projectionGrants()) await client.query(statement);
  return built;
}

async function fill(pool: pg.Pool, client: LockedSession, progress: Progress | undefined) {
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
