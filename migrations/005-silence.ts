import { type Kysely, sql } from 'kysely';

/**
 * The clock of silence and the term of the scheduler that leads (DESIGN §5), and what that clock showed when a node was heard. Losing
 * either gives every node the whole time again.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE telemetry.scheduler (
      id text COLLATE "C" PRIMARY KEY,
      term bigint NOT NULL,
      holder text COLLATE "C" NOT NULL,
      heard_ms bigint NOT NULL
    )`.execute(db);
  await sql`ALTER TABLE telemetry.node_liveness ADD COLUMN heard_ms bigint`.execute(db);
}
