import type { Kysely } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { postgresEventLog } from '../../src/log/postgres/postgres-event-log.ts';
import { type ReadDatabase, readDatabase } from '../../src/read/database.ts';
import type { FleetView } from '../../src/read/fleet-view.ts';
import { withLiveView } from '../../src/read/live-view.ts';
import { pastView } from '../../src/read/past-view.ts';
import { resolveNode } from '../../src/read/resolve-node.ts';
import { fleetMaker } from '../cli/support/fleet.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const NODES = [
  ['abcde111-1111-4111-8111-111111111111', 'zeta'],
  ['abcde222-2222-4222-8222-222222222222', 'alpha'],
  ['ffff3333-3333-4333-8333-333333333333', 'abcd'],
] as const;
const JOB = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';

let database: TestDatabase;
let pool: ReturnType<typeof createPool>;
let db: Kysely<ReadDatabase>;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.url, program: 'test', limits: READER_LIMITS, max: 4 });
  db = readDatabase(pool);
  await using fleet = fleetMaker(database.url);
  for (const [id, name] of NODES) {
    await fleet.enrollNode(id, name);
    if (name === 'zeta') await fleet.runJob(JOB, id);
  }
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

const looks: readonly (readonly [what: string, look: (view: FleetView) => Promise<unknown>])[] = [
  ['nodes', (view: FleetView) => view.nodes({})],
  ['nodes of a pool and status', (view: FleetView) => view.nodes({ pool: 'application', status: 'active' })],
  ['nodes of a pool that has none', (view: FleetView) => view.nodes({ pool: 'database' })],
  ['nodes by name', (view: FleetView) => view.nodesMatching('abcd')],
  ['nodes by the beginning of an id', (view: FleetView) => view.nodesMatching('ffff3')],
  ['certificates', (view: FleetView) => view.certificates(NODES[0][0])],
  ['certificates of all nodes', (view: FleetView) => view.certificatesOf({ limit: 2 })],
  [
    'certificates of a node in force',
    (view: FleetView) => view.certificatesOf({ nodeId: NODES[1][0], inForceAt: Date.now(), limit: 10 }),
  ],
  [
    'certificates in force in two days',
    (view: FleetView) => view.certificatesOf({ inForceAt: Date.now() + 2 * 86_400_000, limit: 10 }),
  ],
  [
    'certificates by the beginning of a fingerprint',
    async (view: FleetView) => {
      const [certificate] = await view.certificates(NODES[2][0]);
      return view.certificatesMatching({ by: 'fingerprint', beginning: certificate?.fingerprint?.slice(0, 8) ?? '-' });
    },
  ],
  ['the CA', (view: FleetView) => view.ca()],
  ['jobs', (view: FleetView) => view.jobs({ limit: 10 })],
  [
    'jobs of a node',
    (view: FleetView) => view.jobs({ nodeId: NODES[0][0], status: 'completed', kind: 'diagnose_host', limit: 1 }),
  ],
  ['jobs of another node', (view: FleetView) => view.jobs({ nodeId: NODES[1][0], limit: 10 })],
  ['jobs by the beginning of an id', (view: FleetView) => view.jobsMatching('aaaa')],
  ['the last events of a node', (view: FleetView) => view.timeline(NODES[0][0], 3)],
  ['firewalls', (view: FleetView) => view.firewalls()],
];

describe('the live view and the past at the head', () => {
  test.for(looks)('%s: the same rows in the same order', async ([, look]) => {
    const live = await withLiveView(db, look);
    const past = await look(await pastView(postgresEventLog(pool), 'head'));
    expect(past).toEqual(live);
  });

  test('the moment: the same position; the past has no telemetry', async () => {
    const live = await withLiveView(db, (view) => Promise.resolve(view.moment));
    const past = await pastView(postgresEventLog(pool), 'head');
    expect([past.moment.position, past.moment.at, past.telemetry]).toEqual([live.position, live.at, null]);
  });
});

test('certificates: those that are asked for, and no others', async () => {
  const count = (filter: Parameters<FleetView['certificatesOf']>[0]) =>
    withLiveView(db, async (view) => (await view.certificatesOf(filter)).length);
  expect([
    await count({ limit: 10 }),
    await count({ limit: 2 }),
    await count({ nodeId: NODES[1][0], inForceAt: Date.now(), limit: 10 }),
    await count({ inForceAt: Date.now() + 2 * 86_400_000, limit: 10 }),
  ]).toEqual([3, 2, 1, 0]);
});

describe('a node by reference', () => {
  const resolve = (reference: string) =>
    withLiveView(db, async (view) => {
      const resolved = await resolveNode(view, reference);
      return resolved.ok ? resolved.value.name : resolved.refusal.code;
    });

  test.for([
    ['a name', 'zeta', 'zeta'],
    ['a name that is also the beginning of ids', 'abcd', 'abcd'],
    ['a whole id', NODES[1][0], 'alpha'],
    ['four characters of one id', 'ffff', 'abcd'],
    ['three characters', 'fff', 'node_unknown'],
    ['the beginning of two ids', 'abcde', 'node_ambiguous'],
    ['a pattern of LIKE', 'abc%', 'node_unknown'],
    ['nobody', 'nobody', 'node_unknown'],
  ] as const)('%s', async ([, reference, expected]) => {
    expect(await resolve(reference)).toBe(expected);
  });
});
