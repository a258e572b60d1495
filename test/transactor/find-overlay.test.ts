import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { RecordedEvent } from '../../src/domain/event/recorded.ts';
import type { AnyFinder, FinderArguments } from '../../src/transactor/find.ts';
import {
  allCertificatesInForce,
  certificatesInForce,
  nodesInStatus,
  queuedForNode,
  queuedForPool,
  rotationByCa,
  rotationFromCa,
} from '../../src/transactor/finders.ts';
import { RowView } from '../../src/transactor/row-view.ts';
import { recorded } from '../projections/fold.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { make } from '../support/events.ts';
import { generateHistory } from '../support/history.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

const uuid = (n: number) => `00000000-0000-4000-8000-${n.toString().padStart(12, '0')}`;
const JOBS = 8;

/** What can happen to one of a few jobs; impossible steps are left out when the history is made. */
const step = fc.record({
  job: fc.integer({ min: 1, max: JOBS }),
  what: fc.constantFrom('queue_node', 'queue_pool', 'lease', 'expire', 'complete'),
  kind: fc.constantFrom('diagnose_host', 'build'),
});

/** How much of a history is written already. */
const share = fc.double({ min: 0, max: 1, noNaN: true });

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Turns steps into events of a history that can have happened. */
function history(steps: readonly Step[]): RecordedEvent[] {
  const status = new Map<number, 'queued' | 'leased' | 'completed'>();
  const events: RecordedEvent[] = [];
  for (const { job, what, kind } of steps) {
    const event = eventOf(job, what, kind, status.get(job));
    if (event === undefined) continue;
    if (event.type === 'job_queued' || event.type === 'job_lease_expired') status.set(job, 'queued');
    if (event.type === 'job_leased') status.set(job, 'leased');
    if (event.type === 'job_completed') status.set(job, 'completed');
    const position = events.length + 1;
    const actor = { kind: 'operator' as const, id: 'x', database_user: 'x', client_address: null };
    const metadata = { actor, command_id: 'x', correlation_id: 'x', program_version: 'x', epoch: 1 };
    events.push({ position, stream: `job-${uuid(job)}`, at: position, metadata, ...event });
  }
  return events;
}

function eventOf(job: number, what: Step['what'], kind: string, status: string | undefined): FleetEvent | undefined {
  const id = uuid(job);
  const digest = 'a'.repeat(64);
  const lease = { job_id: id, node_id: uuid(100), attempt: 1 };
  if (what === 'queue_node' || what === 'queue_pool') {
    if (status !== undefined) return undefined;
    const target =
      what === 'queue_node' ? { node_id: uuid(100), pool: null } : { node_id: null, pool: 'build' as const };
    return {
      type: 'job_queued',
      data: { job_id: id, kind, ...target, org_id: null, payload_sha256: digest, max_attempts: 3 },
    };
  }
  if (what === 'lease') {
    if (status !== 'queued') return undefined;
    const grant = { request_id: uuid(200), token_sha256: digest, expires_at: 1, reissued: false };
    return { type: 'job_leased', data: { ...lease, ...grant } };
  }
  if (status !== 'leased') return undefined;
  if (what === 'expire') return { type: 'job_lease_expired', data: lease };
  return { type: 'job_completed', data: { ...lease, result_sha256: digest } };
}

/** What each search finds in the overlay of what is not written yet, and what it finds once that is. */
async function searchBoth(
  events: readonly RecordedEvent[],
  written: number,
  searches: readonly { find: AnyFinder; args: FinderArguments }[],
) {
  const client = await database.pool.connect();
  try {
    await client.query('BEGIN');
    const before = new RowView(client);
    for (const event of events.slice(0, written)) await before.fold(event);
    for (const statement of before.changes()) await client.query(statement);
    const view = new RowView(client);
    for (const event of events.slice(written)) await view.fold(event);
    const overlaid = [];
    for (const { find, args } of searches) overlaid.push(await view.find(find, args));
    for (const statement of view.changes()) await client.query(statement);
    const flushed = [];
    for (const { find, args } of searches) flushed.push(await new RowView(client).find(find, args));
    return { overlaid, flushed };
  } finally {
    await client.query('ROLLBACK');
    client.release();
  }
}

test('find in the overlay equals flush, then query: whatever part of the history is not written yet', async () => {
  const searches = [
    { find: { ...queuedForNode, limit: 3 }, args: { node_id: uuid(100), kinds: ['diagnose_host', 'build'] } },
    { find: { ...queuedForNode, limit: 1 }, args: { node_id: uuid(100), kinds: ['build'] } },
    { find: { ...queuedForPool, limit: 2 }, args: { pool: 'build', kinds: ['build', 'diagnose_host'] } },
  ];
  const property = fc.asyncProperty(fc.array(step, { maxLength: 40 }), share, async (steps, part) => {
    const events = history(steps);
    const { overlaid, flushed } = await searchBoth(events, Math.floor(events.length * part), searches);
    expect(overlaid).toEqual(flushed);
  });
  await fc.assert(property, { numRuns: 300 });
});

test('nodes by status, certificates that are not revoked and rotations by CA: the same', async () => {
  let found = 0;
  const property = fc.asyncProperty(fc.integer(), share, async (seed, part) => {
    const events = await generateHistory(seed, 600);
    const nodes = events.flatMap(({ type, data }) => (type === 'node_enrolled' ? [data.node_id] : []));
    const cas = events.flatMap(({ type, data }) => (type === 'ca_rotation_begun' ? [data] : []));
    const searches = [
      { find: { ...allCertificatesInForce, limit: 7, whole: false }, args: {} },
      { find: allCertificatesInForce, args: {} },
      { find: nodesInStatus, args: { statuses: ['active', 'unhealthy', 'draining'] } },
      { find: { ...nodesInStatus, limit: 2, whole: false }, args: { statuses: ['active', 'provisioning'] } },
      ...nodes.slice(0, 3).map((node_id) => ({ find: certificatesInForce, args: { node_id } })),
      ...cas.slice(0, 2).map(({ ca_sha256 }) => ({ find: rotationByCa, args: { ca_sha256 } })),
      ...cas.slice(0, 1).map(({ previous_ca_sha256: ca_sha256 }) => ({ find: rotationFromCa, args: { ca_sha256 } })),
    ];
    const { overlaid, flushed } = await searchBoth(events, Math.floor(events.length * part), searches);
    expect(overlaid).toEqual(flushed);
    found += flushed.flat().length;
  });
  await fc.assert(property, { numRuns: 15 });
  expect(found).toBeGreaterThan(100);
});

test('there may be more rows than a finder of all of them answers: an error, no part of them', async () => {
  const view = new RowView(database.pool);
  const requested = [uuid(901), uuid(902)].map((node_id) =>
    make('node_provisioning_requested', { node_id, name: `n-${node_id.slice(-6)}` }),
  );
  for (const event of recorded(requested)) await view.fold(event);
  const few = { ...nodesInStatus, limit: 2 };
  await expect(view.find(few, { statuses: ['provisioning'] })).rejects.toThrow('nodes_in_status found 2 rows or more');
});
