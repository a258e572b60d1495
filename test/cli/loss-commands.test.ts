import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { PassingFleet, WEB } from '../scheduler/support/passing-fleet.ts';
import { type CliRun, plainLines, runCli } from './support/run-cli.ts';

// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

/** The commands' login: a member of the operators' group role, as in a real fleet. */
const LOGIN = `operator_${randomBytes(4).toString('hex')}`;

let fleet: PassingFleet;
let env: Record<string, string>;
/** Six hosts of one pool, of which the first has an instance. */
let names: readonly string[];
let ids: readonly string[];

const cli = (...args: string[]): Promise<CliRun> => runCli(args, { env });
const json = async (...args: string[]) => {
  const { code, stdout } = await cli(...args, '--json');
  const document = JSON.parse(stdout) as Readonly<Record<string, unknown>>;
  return { ...document, code } as Readonly<Record<string, unknown>>;
};
const name = (n: number) => names[n] ?? '';

beforeAll(async () => {
  fleet = await PassingFleet.start();
  const [first = ''] = await fleet.addNodes({ ingress: true });
  await fleet.deploy({ roles: [{ ...WEB, count: 1 }] });
  await fleet.settle();
  ids = [first, ...(await fleet.addNodes({}, {}, {}, {}, {}))];
  const { rows } = await fleet.database.pool.query<{ name: string }>(
    'SELECT name FROM fleet.fleet_nodes ORDER BY array_position($1::text[], node_id)',
    [ids],
  );
  names = rows.map((row) => row.name);
  await fleet.database.pool.query(`CREATE ROLE ${LOGIN} LOGIN PASSWORD 'x' IN ROLE pushleft_operator`);
  env = { DATABASE_URL: fleet.database.url.replace(/\/\/[^@]*@/, `//${LOGIN}:x@`) };
});

afterAll(async () => {
  await fleet.database.pool.query(`DROP ROLE ${LOGIN}`);
  await fleet[Symbol.asyncDispose]();
});

test('sweep, one node is silent for 100 s: foretold, then unhealthy', async () => {
  fleet.silent.add(ids[0] ?? '');
  await fleet.pass(100_000);
  const before = await fleet.head();
  const foretold = plainLines(await cli('fleet', 'sweep', '--dry-run'));
  expect(foretold).toEqual([`${name(0)} has been silent for 1m 40s: would append node_became_unhealthy`]);
  expect(await fleet.head()).toBe(before);
  expect(plainLines(await cli('fleet', 'sweep'))).toEqual([
    `${name(0)} has been silent for 1m 40s: is unhealthy now`,
    `appended node_became_unhealthy at ${before + 1}`,
  ]);
});

test('why, of an unhealthy node: since when it is silent, and what becomes of it', async () => {
  const why = await json('fleet', 'why', name(0));
  expect(why['hindrances']).toContainEqual({
    code: 'unhealthy',
    message: 'the node is unhealthy after 100 s of silence: it keeps what it has and gets nothing new',
    remedy: 'its next request makes it well again; one that stays silent is given up',
  });
});

test('sweep, one of two lost nodes fails: the other is lost, exit 1', async () => {
  fleet.silent.add(ids[1] ?? '');
  await fleet.pass(300_000);
  await fleet.database.pool.query(`
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not this one'; END $$;
    CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON fleet.fleet_nodes FOR EACH ROW
    WHEN (NEW.node_id = '${ids[1] ?? ''}') EXECUTE FUNCTION public.refuse()`);
  expect(await json('fleet', 'sweep')).toMatchObject({
    code: 1,
    failed: 1,
    nodes: expect.arrayContaining([
      expect.objectContaining({ name: name(0), status: 'unhealthy', outcome: 'lost', silent_ms: 400_000 }),
      expect.objectContaining({ name: name(1), status: 'active', outcome: 'failed' }),
    ]),
    events: [{ type: 'node_lost' }, { type: 'instance_replacement_queued' }],
  });
  await fleet.database.pool.query('DROP TRIGGER refuse ON fleet.fleet_nodes');
});

test('reclaim show: what was taken, when, and how far its replacement is', async () => {
  await fleet.settle();
  expect(await json('fleet', 'reclaim', 'show', name(0))).toMatchObject({
    name: name(0),
    status: 'lost',
    at: expect.stringMatching(/Z$/),
    silent_ms: 400_000,
    fenced_jobs: 0,
    lost_instances: 1,
    stranded_databases: 0,
    uncleaned_instances: 1,
    replacements_ready: 1,
    replacements_queued: 0,
    instances: [
      {
        cleaned_at: null,
        replacement_status: 'ready',
        replacement_node_id: expect.any(String),
        replacement_ready_at: expect.stringMatching(/Z$/),
      },
    ],
  });
});

test('reclaim show, nothing was taken from the node: refused', async () =>
  expect(await json('fleet', 'reclaim', 'show', name(2))).toMatchObject({ code: 1 }));

test('list: one line a lost node', async () => {
  const lines = plainLines(await cli('fleet', 'list'));
  expect(lines).toContain(
    `${name(0)} is lost: 0 jobs fenced; 1 instances lost; 1 replacements ready, 0 queued; 0 databases stranded`,
  );
});

test('freeze: shown in the list, and nobody is lost; repeated: no new event; thaw ends it', async () => {
  expect((await cli('fleet', 'loss', 'freeze')).stdout).toContain('(node_losses_frozen at ');
  expect(plainLines(await cli('fleet', 'loss', 'freeze'))).toEqual(['it was frozen already, nothing was appended']);
  await fleet.sweep();
  expect(plainLines(await cli('fleet', 'list')).at(-1)).toMatch(/^FROZEN since .*Z: no silent node is given up/);
  expect(await json('fleet', 'sweep')).toMatchObject({ code: 0, nodes: [{ outcome: 'losses_frozen' }], events: [] });
  expect((await cli('fleet', 'loss', 'thaw')).stdout).toContain('(node_losses_thawed at ');
});

test('most of the pool is gone: foretold, held, shown loudly; released: lost', async () => {
  await fleet.sweep();
  const [, , third = '', fourth = ''] = ids;
  fleet.silent.add(third);
  await fleet.pass(210_000);
  await fleet.sweep();
  fleet.silent.add(fourth);
  await fleet.pass(100_000);
  expect(await json('fleet', 'sweep', '--dry-run')).toMatchObject({
    nodes: expect.arrayContaining([
      expect.objectContaining({ node_id: third, outcome: 'losses_held' }),
      expect.objectContaining({ node_id: fourth, events: ['node_became_unhealthy'] }),
    ]),
  });
  const held = await cli('fleet', 'sweep');
  expect(held.code).toBe(0);
  expect(plainLines(held)).toContainEqual(
    expect.stringMatching(/^HELD since .*Z: 2 nodes of pool application fell silent together and none is given up/),
  );
  const [list, why] = await Promise.all([cli('fleet', 'list'), json('fleet', 'why', name(2))]);
  expect(plainLines(list).at(-1)).toMatch(/^HELD since /);
  expect(why).toMatchObject({
    hindrances: expect.arrayContaining([expect.objectContaining({ code: 'losses_held' })]),
  });
  expect(await json('fleet', 'loss', 'release', 'application')).toMatchObject({
    code: 0,
    node_ids: expect.arrayContaining([third, fourth]),
  });
  expect(await json('fleet', 'sweep')).toMatchObject({
    nodes: expect.arrayContaining([expect.objectContaining({ node_id: third, outcome: 'lost' })]),
  });
  expect(await json('fleet', 'loss', 'status')).toMatchObject({
    frozen_at: null,
    pools: expect.arrayContaining([
      { pool: 'application', held_at: null, silent_node_ids: [], released_node_ids: expect.arrayContaining([fourth]) },
    ]),
  });
});

test('why, of a lost node: when it was given up, and what to do', async () => {
  const why = await json('fleet', 'why', name(0));
  expect(why['hindrances']).toEqual([
    {
      code: 'lost',
      message: expect.stringMatching(
        /^the node was given up at .*Z after 400 s of silence: it gets no work any more, even if it comes back$/,
      ),
      remedy: `see what became of its work: \`pushleft-controller fleet reclaim show ${name(0)}\`; then \`pushleft-controller fleet decommission ${name(0)}\``,
    },
  ]);
});
