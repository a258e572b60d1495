import { type Kysely, sql } from 'kysely';

/** Sources that builds download. Erasable: the log holds their digests, and a build whose source is gone fails. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE telemetry.sources (
      sha256 text COLLATE "C" PRIMARY KEY,
      body bytea NOT NULL,
      stored_at timestamptz NOT NULL DEFAULT now()
    )`.execute(db);
}
