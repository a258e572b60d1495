import type pg from 'pg';
import { DECISION_LOCK } from '../database/locks.ts';
import { readHead } from '../log/postgres/reader.ts';
import { DEFINITION_DIGEST } from '../projector/digest.ts';
import type { ProgramRow } from './database.ts';

/** A database session that holds, or waits for, the decision lock. `heldMs` is the age of its transaction. */
export interface LockSession {
  readonly program: string;
  readonly granted: boolean;
  readonly transactionMs: number | null;
}

/** What the database says of the control plane. Times are ms. */
export interface Health {
  readonly databaseVersion: string;
  readonly databaseUser: string;
  /** What the whole inquiry took until the first answer: a round trip. */
  readonly roundTripMs: number;
  readonly head: { readonly position: number; readonly at: number };
  /** Position of the last event that the projections hold; equals the head's in one snapshot. */
  readonly projectedPosition: number;
  readonly definitionMatches: boolean;
  readonly lock: readonly LockSession[];
  readonly programs: readonly ProgramRow[];
  /** By how much the database's clock is ahead of this host's; and of the log's last event (never negative there, if all is well). */
  readonly clockAheadOfHostMs: number;
  readonly clockAheadOfLogMs: number;
}

/** Asks the database how the control plane is. Every statement is short and takes no lock. */
export async function readHealth(pool: pg.Pool): Promise<Health> {
  const client = await pool.connect();
  try {
    const before = Date.now();
    const clock = await one<{ now: number; version: string; db_user: string }>(
      client,
      `SELECT clock_timestamp() AS now, current_setting('server_version') AS version, session_user::text AS db_user`,
    );
    const after = Date.now();
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const head = await readHead(client);
    const projected = await one<{ position: number | null; digest: string | null }>(
      client,
      `SELECT (SELECT max(position) FROM fleet.fleet_events) AS position, (SELECT digest FROM fleet.definition) AS digest`,
    );
    const { rows: programs } = await client.query<ProgramRow>(
      'SELECT program, kind, details, started_at, beacon_at FROM telemetry.programs ORDER BY kind, program',
    );
    await client.query('COMMIT');
    return {
      databaseVersion: clock.version,
      databaseUser: clock.db_user,
      roundTripMs: after - before,
      head: { position: head.position, at: head.at },
      projectedPosition: projected.position ?? 0,
      definitionMatches: projected.digest === DEFINITION_DIGEST,
      lock: await lockSessions(client),
      programs,
      // The answer was given about half-way between asking and hearing.
      clockAheadOfHostMs: Math.round(clock.now - (before + after) / 2),
      clockAheadOfLogMs: head.position === 0 ? 0 : clock.now - head.at,
    };
  } finally {
    client.release();
  }
}

/** A bigint advisory key shows in pg_locks as two halves; `objsubid` 1 says that it was one key and not two. */
async function lockSessions(client: pg.PoolClient): Promise<LockSession[]> {
  const { rows } = await client.query<{ program: string | null; granted: boolean; transaction_ms: number | null }>(
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

async function one<R extends object>(client: pg.PoolClient, text: string): Promise<R> {
  const { rows } = await client.query<R>(text);
  const [row] = rows;
  if (row === undefined) throw new Error('the database answered nothing');
  return row;
}
