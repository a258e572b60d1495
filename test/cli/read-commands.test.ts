import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { fleetMaker, REPORT } from './support/fleet.ts';
import { type CliRun, plainLines, runCli } from './support/run-cli.ts';

const APP = '11111111-1111-4111-8111-111111111111';
const BUILD = '22222222-2222-4222-8222-222222222222';
const WAITING = '33333333-3333-4333-8333-333333333333';
const JOB = 'aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa';

// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let database: TestDatabase;
let env: Record<string, string>;
/** Where the log stood before the job was queued, and what the live commands showed then. */
let earlier: { position: number; list: unknown; show: unknown };

const cli = (...args: string[]): Promise<CliRun> => runCli(args, { env });
const json = async (...args: string[]) => JSON.parse((await cli(...args, '--json')).stdout);

beforeAll(async () => {
  database = await createTestDatabase();
  env = { DATABASE_URL: database.url };
  await using fleet = fleetMaker(database.url);
  await fleet.enrollNode(APP, 'app-one');
  await fleet.enrollNode(BUILD, 'build-one', 'build');
  await fleet.requestNode(WAITING, 'app-two');
  // Heard in an hour: however slow this machine is, no node falls silent meanwhile.
  await database.pool.query(
    `INSERT INTO telemetry.node_liveness VALUES ($1, now() + interval '1 hour', 40), ($2, now() + interval '1 hour', NULL)`,
    [APP, BUILD],
  );
  const [list, show] = await Promise.all([json('fleet', 'list'), json('fleet', 'show', 'app-one')]);
  earlier = { position: list.position, list, show };
  await fleet.runJob(JOB, APP);
});

afterAll(() => database.drop());

describe('fleet list', () => {
  test('three nodes: a table in the order of pool and name', async () => {
    const run = await cli('fleet', 'list');
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
    expect(plainLines(run)).toEqual([
      'NAME  POOL  REGION  STATUS  SCHEDULABLE  CPU  MEMORY  DISK  LAST SEEN  AGENT  ID',
      'app-one  application  fsn1  active  no  0/3.5  0/7 GB  0/60 GB  0s ago  0.1.0  11111111',
      'app-two  application  fsn1  provisioning (pending)  no  -  -  -  never  -  33333333',
      'build-one  build  fsn1  active  no  0/3.5  0/7 GB  0/60 GB  0s ago  0.1.0  22222222',
    ]);
  });

  test('filtered by pool and status, as JSON: those nodes, their telemetry under one key', async () => {
    const { nodes } = await json('fleet', 'list', '--pool', 'application', '--status', 'active');
    expect(nodes).toEqual([
      expect.objectContaining({
        node_id: APP,
        name: 'app-one',
        cpu_millis: 3_500,
        telemetry: { last_seen_at: expect.stringMatching(/^\d{4}-.*Z$/), data_disk_free_gb: 40 },
      }),
    ]);
    expect(JSON.stringify(nodes)).not.toContain('sha256');
  });

  test('--at an earlier position: what the live command showed then, without telemetry', async () => {
    const { position, list } = earlier;
    const past = await json('fleet', 'list', '--at', String(position));
    expect(past).toEqual(withoutTelemetry(list));
  });

  test('--at a time before the first event: no nodes, and it says that it is the past', async () => {
    const run = await cli('fleet', 'list', '--at', '2020-01-01');
    expect(plainLines(run)).toEqual(['no nodes', '', 'as it was at position 0, -']);
  });
});

describe('fleet show', () => {
  test('a node by name: its facts, its certificate and its timeline', async () => {
    const run = await cli('fleet', 'show', 'app-one');
    const shown = plainLines(run);
    expect(run.code).toBe(0);
    expect(shown).toContain('capacity  3.5 CPU, 7 GB, 60 GB');
    expect(shown).toContain('host  4 CPUs, 8 GB, 6.8.0-45-generic, Docker 29.0.1');
    expect(shown.find((line) => line.startsWith('certificate'))).toMatch(
      /^certificate {2}[0-9a-f]{16}, valid for 23h \d\dm/,
    );
    expect(shown.filter((line) => /^\d+ {2}/.test(line)).map((line) => line.split('  ')[2])).toEqual([
      'node_provisioning_requested',
      'node_capacity_recorded',
      'node_enrollment_secret_armed',
      'certificate_authorized',
      'certificate_issued',
      'node_enrolled',
      'certificate_first_used',
      'node_host_facts_changed',
    ]);
  });

  test('the beginning of an id, --at an earlier position: what the live command showed then', async () => {
    const { position, show } = earlier;
    const past = await json('fleet', 'show', APP.slice(0, 6), '--at', String(position));
    expect(withoutAges(past)).toEqual(withoutAges(withoutTelemetry(show)));
  });
});

describe('fleet why', () => {
  test('a node whose server was never requested: says so and what to run', async () => {
    const { hindrances } = await json('fleet', 'why', 'app-two');
    expect(hindrances).toEqual([
      {
        code: 'server_not_requested',
        message: 'no server has been requested yet',
        remedy: 'run `pushleft-controller fleet provision --resume app-two`',
      },
    ]);
  });

  test('an enrolled node: only admission is missing', async () => {
    const run = await cli('fleet', 'why', 'build-one');
    expect(plainLines(run)).toEqual([
      'build-one is active, not schedulable, provisioning enrolled',
      "- the node is not admitted: it takes jobs that name it, and none of its pool's",
      'run `pushleft-controller fleet admit build-one`',
    ]);
  });
});

describe('fleet events', () => {
  test('filtered by node and type: only those, oldest first', async () => {
    const { events } = await json('fleet', 'events', '--node', 'app-one', '--type', 'node_enrolled,job_completed');
    expect(events.map(({ type, node_id }: { type: string; node_id: string }) => [type, node_id])).toEqual([
      ['node_enrolled', APP],
      ['job_completed', APP],
    ]);
  });

  test('--after a position with --limit: the first ones behind it', async () => {
    const { events, more } = await json('fleet', 'events', '--after', '2', '--limit', '2');
    expect(events.map(({ position }: { position: number }) => position)).toEqual([3, 4]);
    expect(more).toBe(true);
  });

  test('more than --limit: the last ones, and says that there are others', async () => {
    const lines = plainLines(await cli('fleet', 'events', '--type', 'node_enrolled', '--limit', '1'));
    expect(lines).toEqual([expect.stringContaining('node_enrolled'), 'only the last 1: --limit shows more']);
    expect((await json('fleet', 'events', '--type', 'node_enrolled', '--limit', '2')).more).toBe(false);
  });

  test('--since now: none', async () => {
    const run = await cli('fleet', 'events', '--since', '0s');
    expect(plainLines(run)).toEqual(['no such events']);
  });
});

describe('job', () => {
  test('list: names the nodes', async () => {
    const [heading, row] = plainLines(await cli('job', 'list'));
    expect(heading).toBe('ID  KIND  STATUS  FOR  NODE  ATTEMPT  QUEUED  FINISHED');
    expect(row).toMatch(new RegExp(`^${JOB} {2}diagnose_host {2}completed {2}app-one {2}app-one {2}1/3 {2}20`));
  });

  test('list --at before it was queued: no jobs', async () => {
    expect((await json('job', 'list', '--at', String(earlier.position))).jobs).toEqual([]);
  });

  test('show: prints the report of diagnose_host', async () => {
    expect(plainLines(await cli('job', 'show', 'aaaa'))).toEqual(
      expect.arrayContaining(['CHECK  STATUS  TIME  DETAIL', 'state_files  pass  3 ms  state_files is well']),
    );
  });

  test('show --json: payload and result under telemetry, no hash of a lease token', async () => {
    const { job, telemetry } = await json('job', 'show', JOB);
    expect(telemetry).toEqual({ lease_expires_at: null, payload: {}, result: REPORT });
    expect(job).toMatchObject({ job_id: JOB, status: 'completed', attempt: 1 });
    expect(Object.keys(job)).not.toContain('lease_token_sha256');
  });

  test('more jobs than list --limit: the newest, and says that there are others', async () => {
    expect((await json('job', 'list')).more).toBe(false);
    await cli('job', 'queue', 'diagnose_host', '--node', 'build-one');
    const [, row, cut] = plainLines(await cli('job', 'list', '--limit', '1'));
    expect(row).toContain('diagnose_host  queued  build-one');
    expect(cut).toBe('only the newest 1: --limit shows more');
  });
});

describe('log and projections', () => {
  test('log show: the event whole, with the session that wrote it', async () => {
    const event = await json('log', 'show', '1');
    expect(event).toMatchObject({
      position: 1,
      type: 'node_provisioning_requested',
      stream: `node-${APP}`,
      revision: 1,
    });
    expect(event.metadata.actor).toMatchObject({ kind: 'gateway', id: 'test', client_address: null });
  });

  test('log verify, projections verify and status: nothing to complain of', async () => {
    const [log, projections, status] = await Promise.all([
      json('log', 'verify'),
      json('projections', 'verify'),
      json('projections', 'status'),
    ]);
    expect(log).toMatchObject({ position: status.log_position, fault: null });
    expect(projections).toMatchObject({ position: status.log_position, differences: [] });
    expect(status).toMatchObject({ position: status.log_position, definition_matches: true });
  });

  test('doctor without gateway and scheduler: exit 3, names what to start', async () => {
    const run = await cli('fleet', 'doctor');
    expect(run.code).toBe(3);
    expect(plainLines(run)).toEqual(
      expect.arrayContaining([
        'gateways  fail  none is alive: start one with `pushleft-controller gateway`',
        'scheduler  fail  none is alive: start one with `pushleft-controller scheduler`',
        'lock  pass  free',
        'clock_host  pass  the database and this host agree',
      ]),
    );
  });
});

/** A live document as time travel shows it. */
function withoutTelemetry(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document), (key, value: unknown) => (key === 'telemetry' ? null : value));
}

/** Ages are measured by the clock, or in the past by the moment itself. */
function withoutAges(document: unknown): unknown {
  return JSON.parse(JSON.stringify(document), (key, value: unknown) =>
    key === 'remaining_seconds' ? undefined : value,
  );
}
