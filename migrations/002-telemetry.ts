import { type Kysely, sql } from 'kysely';

/**
 * What is not a transition: liveness, lease guards, remembered commands, gateway beacons, and the erasable bodies of jobs.
 * Bounded, never replayed; losing it delays the system and corrupts nothing.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`CREATE SCHEMA telemetry`.execute(db);
  await sql`
    CREATE TABLE telemetry.node_liveness (
      node_id text COLLATE "C" PRIMARY KEY,
      last_seen_at timestamptz NOT NULL,
      data_disk_free_gb integer
    )`.execute(db);
  await sql`
    CREATE TABLE telemetry.job_leases (
      job_id text COLLATE "C" PRIMARY KEY,
      node_id text COLLATE "C" NOT NULL,
      token_sha256 text COLLATE "C" NOT NULL,
      expires_at timestamptz NOT NULL
    )`.execute(db);
  await sql`CREATE INDEX job_leases_expires_at ON telemetry.job_leases (expires_at)`.execute(db);
  await sql`
    CREATE TABLE telemetry.commands (
      command_id text COLLATE "C" PRIMARY KEY,
      outcome text NOT NULL,
      at timestamptz NOT NULL DEFAULT now()
    )`.execute(db);
  await sql`CREATE INDEX commands_at ON telemetry.commands (at)`.execute(db);
  await sql`
    CREATE TABLE telemetry.bodies (
      job_id text COLLATE "C" NOT NULL,
      role text COLLATE "C" NOT NULL,
      sha256 text COLLATE "C" NOT NULL,
      body text NOT NULL,
      PRIMARY KEY (job_id, role)
    )`.execute(db);
  await sql`
    CREATE TABLE telemetry.programs (
      program text COLLATE "C" PRIMARY KEY,
      kind text COLLATE "C" NOT NULL,
      details jsonb NOT NULL,
      started_at timestamptz NOT NULL,
      beacon_at timestamptz NOT NULL
    )`.execute(db);
}
