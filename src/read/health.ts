import type pg from 'pg';
import { type LockSession, readLockSessions } from '../database/lock-sessions.ts';
import { readHead } from '../log/postgres/reader.ts';
import { DEFINITION_DIGEST } from '../projector/digest.ts';
import { readSnapshot } from '../projector/generation.ts';
import type { ProgramRow } from './database.ts';

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
  /** Pools whose silent nodes are not given up, or `fleet` for all of them, and since when; empty where the tables are another version's. */
  readonly heldLosses: readonly HeldScope[];
  /** By how much the database's clock is ahead of this host's; and of the log's last event (never negative there, if all is well). */
  readonly clockAheadOfHostMs: number;
  readonly clockAheadOfLogMs: number;
}

/** A pool of which no silent node is given up, or the whole fleet, and since when (ms). */
export interface HeldScope {
  readonly scope: string;
  readonly held_at: number;
}

/** Asks the database how the control plane is. Every statement is short and takes no lock. */
export async function readHealth(pool: pg.Pool): Promise<Health> {
  const server = await askServer(pool);
  const { head, projected, held, programs } = await readSnapshot(pool, async (client) => {
    const projected = await one<{ position: number | null; digest: string | null }>(
      client,
      `SELECT (SELECT max(position) FROM fleet.fleet_events) AS position, (SELECT digest FROM fleet.definition) AS digest`,
    );
    return {
      head: await readHead(client),
      projected,
      held: projected.digest === DEFINITION_DIGEST ? await readHeld(client) : [],
      programs: await client.query<ProgramRow>(
        'SELECT program, kind, details, started_at, beacon_at FROM telemetry.programs ORDER BY kind, program',
      ),
    };
  });
  return {
    databaseVersion: server.version,
    databaseUser: server.user,
    roundTripMs: server.roundTripMs,
    head: { position: head.position, at: head.at },
    projectedPosition: projected.position ?? 0,
    definitionMatches: projected.digest === DEFINITION_DIGEST,
    lock: server.lock,
    programs: programs.rows,
    heldLosses: held,
    clockAheadOfHostMs: Math.round(server.now - server.hostNow),
    clockAheadOfLogMs: head.position === 0 ? 0 : server.now - head.at,
  };
}

/** What the server says of itself. The host's clock when it answered is taken as half-way between asking and hearing. */
async function askServer(pool: pg.Pool) {
  const client = await pool.connect();
  try {
    const before = Date.now();
    const clock = await one<{ now: number; version: string; user: string }>(
      client,
      `SELECT clock_timestamp() AS now, current_setting('server_version') AS version, session_user::text AS "user"`,
    );
    const after = Date.now();
    const lock = await readLockSessions(client);
    return { ...clock, roundTripMs: after - before, hostNow: (before + after) / 2, lock };
  } finally {
    client.release();
  }
}

async function readHeld(client: pg.ClientBase): Promise<HeldScope[]> {
  const { rows } = await client.query<HeldScope>(
    'SELECT scope, held_at FROM fleet.node_loss_holds WHERE held_at IS NOT NULL ORDER BY scope',
  );
  return rows;
}

async function one<R extends object>(client: pg.ClientBase, text: string): Promise<R> {
  const { rows } = await client.query<R>(text);
  const [row] = rows;
  if (row === undefined) throw new Error('the database answered nothing');
  return row;
}
