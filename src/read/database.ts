import { Kysely, PostgresDialect, sql } from 'kysely';
import type pg from 'pg';
import { type RowOf, registry, type TableName } from '../../projections/registry.ts';

/** A job's payload or result as it lies in the erasable table: canonical JSON text. */
interface BodyRow {
  readonly job_id: string;
  readonly role: 'payload' | 'result';
  readonly sha256: string;
  readonly body: string;
}

/** A program's beacon: it was alive at `beacon_at` (ms). `details` is what the program says of itself. */
export interface ProgramRow {
  readonly program: string;
  readonly kind: string;
  readonly details: unknown;
  readonly started_at: number;
  readonly beacon_at: number;
}

/** What read commands may query, typed from the projections' own rows: a column that changes there does not compile here. */
export interface ReadDatabase {
  readonly 'fleet.definition': { readonly digest: string; readonly built_at: number };
  readonly 'fleet.fleet_nodes': RowOf<'fleet_nodes'>;
  readonly 'fleet.fleet_node_certificates': RowOf<'fleet_node_certificates'>;
  readonly 'fleet.fleet_ca': RowOf<'fleet_ca'>;
  readonly 'fleet.ca_rotations': RowOf<'ca_rotations'>;
  readonly 'fleet.jobs': RowOf<'jobs'>;
  readonly 'fleet.pool_firewalls': RowOf<'pool_firewalls'>;
  readonly 'fleet.fleet_events': RowOf<'fleet_events'>;
  readonly 'telemetry.node_liveness': RowOf<'node_liveness'>;
  readonly 'telemetry.job_leases': RowOf<'job_leases'>;
  readonly 'telemetry.bodies': BodyRow;
  readonly 'telemetry.programs': ProgramRow;
}

/** Kysely on a pool of ours, whose sessions read timestamps as ms and bigints as numbers. The pool stays the caller's to end. */
export function readDatabase(pool: pg.Pool): Kysely<ReadDatabase> {
  return new Kysely<ReadDatabase>({ dialect: new PostgresDialect({ pool }) });
}

/** The columns of a table by name: a table that has more than this program knows is read all the same. */
export function columns<T extends TableName>(table: T): readonly (keyof RowOf<T> & string)[] {
  return Object.keys(registry[table].table.columns) as (keyof RowOf<T> & string)[];
}

/** Every program that has said something of itself, and what the database's clock shows (ms). */
export async function readPrograms(
  db: Kysely<ReadDatabase>,
): Promise<{ readonly rows: readonly ProgramRow[]; readonly now: number }> {
  const now = sql<number>`clock_timestamp()`.as('now');
  const rows = await db.selectFrom('telemetry.programs').selectAll().select(now).orderBy('program').execute();
  return { rows, now: rows[0]?.now ?? 0 };
}
