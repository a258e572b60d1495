import { type Kysely, sql } from 'kysely';

/** Which hosts have used a node's identity, by boot id: how a gateway sees that two of them use one in turn. Bounded by age. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`
    CREATE TABLE telemetry.node_hosts (
      node_id text COLLATE "C" NOT NULL,
      boot_id text COLLATE "C" NOT NULL,
      address text NOT NULL,
      fingerprint text COLLATE "C" NOT NULL,
      first_seen_at timestamptz NOT NULL,
      last_seen_at timestamptz NOT NULL,
      PRIMARY KEY (node_id, boot_id)
    )`.execute(db);
  await sql`CREATE INDEX node_hosts_last_seen_at ON telemetry.node_hosts (last_seen_at)`.execute(db);
}
