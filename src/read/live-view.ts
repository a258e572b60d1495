import { CompiledQuery, type Kysely, sql } from 'kysely';
import type { Queryable } from '../log/postgres/reader.ts';
import { DEFINITION_DIGEST } from '../projector/digest.ts';
import { GENERATION_QUERY, type Generation, readOneGeneration } from '../projector/generation.ts';
import { UnavailableError } from '../transactor/command.ts';
import { RowView } from '../transactor/row-view.ts';
import { columns, type ReadDatabase } from './database.ts';
import { type FleetView, MATCHES_MAX, type Telemetry, type ViewMoment } from './fleet-view.ts';

/**
 * Shows the live tables to `look`, all of its queries in one snapshot, so that what it puts together was true at one position of the
 * log. `look` runs again when a rebuild has put other tables in place meanwhile. Throws UnavailableError `definition_mismatch` when the
 * tables are another version's.
 */
export function withLiveView<T>(db: Kysely<ReadDatabase>, look: (view: FleetView) => Promise<T>): Promise<T> {
  return readOneGeneration(
    () => readGeneration(db),
    (began) =>
      db
        .transaction()
        .setIsolationLevel('repeatable read')
        .setAccessMode('read only')
        .execute(async (snapshot) => {
          began(await readGeneration(snapshot));
          return look(liveView(snapshot, await readMoment(snapshot)));
        }),
  );
}

async function readGeneration(db: Kysely<ReadDatabase>): Promise<Generation> {
  const { rows } = await sql.raw<Generation>(GENERATION_QUERY).execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('the database answered nothing');
  return row;
}

async function readMoment(db: Kysely<ReadDatabase>): Promise<ViewMoment> {
  const { rows } = await sql<{ position: number | null; at: number | null; now: number; digest: string | null }>`
    SELECT last.position, last.at, clock_timestamp() AS now, (SELECT digest FROM fleet.definition) AS digest
    FROM (SELECT 1) AS always
    LEFT JOIN (SELECT position, at FROM fleet.fleet_events ORDER BY position DESC LIMIT 1) AS last ON true`.execute(db);
  const [row] = rows;
  if (row === undefined) throw new Error('the database answered nothing');
  if (row.digest !== DEFINITION_DIGEST) {
    throw new UnavailableError(
      'definition_mismatch',
      'the tables were built by another version of this program: run `db migrate`',
    );
  }
  return { position: row.position ?? 0, at: row.at ?? 0, nowMs: row.now };
}

function liveView(db: Kysely<ReadDatabase>, moment: ViewMoment): FleetView {
  return {
    moment,
    telemetry: liveTelemetry(db),
    rows: new RowView(queryable(db)),
    nodes: ({ pool, status }) =>
      db
        .selectFrom('fleet.fleet_nodes')
        .select(columns('fleet_nodes'))
        .$if(pool !== undefined, (query) => query.where('pool', '=', pool ?? 'build'))
        .$if(status !== undefined, (query) => query.where('status', '=', status ?? 'active'))
        .orderBy('pool')
        .orderBy('name')
        .execute(),
    nodesMatching: (reference) =>
      db
        .selectFrom('fleet.fleet_nodes')
        .select(columns('fleet_nodes'))
        .where((or) => or.or([or('name', '=', reference), or('node_id', '^@', reference)]))
        .orderBy(sql`name = ${reference}`, 'desc')
        .orderBy('node_id')
        .limit(MATCHES_MAX)
        .execute(),
    certificates: (nodeId) =>
      db
        .selectFrom('fleet.fleet_node_certificates')
        .select(columns('fleet_node_certificates'))
        .where('node_id', '=', nodeId)
        .orderBy('authorized_at', 'desc')
        .orderBy('certificate_id')
        .execute(),
    certificatesOf: ({ nodeId, inForceAt, limit }) =>
      db
        .selectFrom('fleet.fleet_node_certificates')
        .select(columns('fleet_node_certificates'))
        .$if(nodeId !== undefined, (query) => query.where('node_id', '=', nodeId ?? ''))
        .$if(inForceAt !== undefined, (query) =>
          query
            .where('revoked_at', 'is', null)
            .where(sql<boolean>`not_after > to_timestamp(${inForceAt ?? 0}::double precision / 1000)`),
        )
        .orderBy('authorized_position', 'desc')
        .limit(limit)
        .execute(),
    certificatesMatching: ({ by, beginning }) =>
      db
        .selectFrom('fleet.fleet_node_certificates')
        .select(columns('fleet_node_certificates'))
        .where(by, '^@', beginning)
        .orderBy(by)
        .limit(MATCHES_MAX)
        .execute(),
    ca: () => db.selectFrom('fleet.fleet_ca').select(columns('fleet_ca')).executeTakeFirst(),
    rotation: (rotationId) =>
      db
        .selectFrom('fleet.ca_rotations')
        .select(columns('ca_rotations'))
        .where('rotation_id', '=', rotationId)
        .executeTakeFirst(),
    jobs: ({ nodeId, status, kind, limit }) =>
      db
        .selectFrom('fleet.jobs')
        .select(columns('jobs'))
        .$if(nodeId !== undefined, (query) =>
          query.where((or) => or.or([or('node_id', '=', nodeId ?? ''), or('leased_to', '=', nodeId ?? '')])),
        )
        .$if(status !== undefined, (query) => query.where('status', '=', status ?? 'queued'))
        .$if(kind !== undefined, (query) => query.where('kind', '=', kind ?? ''))
        .orderBy('queued_position', 'desc')
        .limit(limit)
        .execute(),
    jobsMatching: (reference) =>
      db
        .selectFrom('fleet.jobs')
        .select(columns('jobs'))
        .where('job_id', '^@', reference)
        .orderBy('job_id')
        .limit(MATCHES_MAX)
        .execute(),
    async timeline(nodeId, limit) {
      const newestFirst = await db
        .selectFrom('fleet.fleet_events')
        .select(columns('fleet_events'))
        .where('node_id', '=', nodeId)
        .where('job_id', 'is', null)
        .orderBy('position', 'desc')
        .limit(limit)
        .execute();
      return newestFirst.toReversed();
    },
    firewalls: () => db.selectFrom('fleet.pool_firewalls').select(columns('pool_firewalls')).orderBy('pool').execute(),
  };
}

/** The snapshot as what rows are looked up in. */
function queryable(db: Kysely<ReadDatabase>): Queryable {
  const query = async ({ text, values = [] }: { text: string; values?: unknown[] }) =>
    db.executeQuery(CompiledQuery.raw(text, values));
  return { query } as unknown as Queryable;
}

function liveTelemetry(db: Kysely<ReadDatabase>): Telemetry {
  return {
    async liveness(nodeIds) {
      if (nodeIds.length === 0) return new Map();
      const rows = await db
        .selectFrom('telemetry.node_liveness')
        .select(columns('node_liveness'))
        .where('node_id', '=', sql<string>`ANY(${[...nodeIds]}::text[])`)
        .execute();
      return new Map(rows.map((row) => [row.node_id, row]));
    },
    lease: (jobId) =>
      db
        .selectFrom('telemetry.job_leases')
        .select(columns('job_leases'))
        .where('job_id', '=', jobId)
        .executeTakeFirst(),
    gateways: () =>
      db.selectFrom('telemetry.programs').selectAll().where('kind', '=', 'gateway').orderBy('program').execute(),
    async body(jobId, role) {
      const row = await db
        .selectFrom('telemetry.bodies')
        .select('body')
        .where('job_id', '=', jobId)
        .where('role', '=', role)
        .executeTakeFirst();
      return row?.body;
    },
  };
}
