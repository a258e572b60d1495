import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { RecordedEvent } from '../../src/domain/event/recorded.ts';
import { queuedForNode, queuedForPool } from '../../src/transactor/finders.ts';
import { RowView } from '../../src/transactor/row-view.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

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

test('find in the overlay equals flush, then query: whatever part of the history is not written yet', async () => {
  const finders = [
    { find: { ...queuedForNode, limit: 3 }, args: { node_id: uuid(100), kinds: ['diagnose_host', 'build'] } },
    { find: { ...queuedForNode, limit: 1 }, args: { node_id: uuid(100), kinds: ['build'] } },
    { find: { ...queuedForPool, limit: 2 }, args: { pool: 'build', kinds: ['build', 'diagnose_host'] } },
  ];
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 40 }),
    fc.double({ min: 0, max: 1, noNaN: true }),
    async (steps, share) => {
      const events = history(steps);
      const written = Math.floor(events.length * share);
      const client = await database.pool.connect();
      try {
        await client.query('BEGIN');
        const before = new RowView(client);
        for (const event of events.slice(0, written)) await before.fold(event);
        for (const statement of before.changes()) await client.query(statement);
        const view = new RowView(client);
        for (const event of events.slice(written)) await view.fold(event);
        const overlaid = [];
        for (const { find, args } of finders) overlaid.push(await view.find(find, args));
        for (const statement of view.changes()) await client.query(statement);
        const flushed = [];
        for (const { find, args } of finders) flushed.push(await new RowView(client).find(find, args));
        expect(overlaid).toEqual(flushed);
      } finally {
        await client.query('ROLLBACK');
        client.release();
      }
    },
  );
  await fc.assert(property, { numRuns: 300 });
});
