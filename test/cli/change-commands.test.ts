import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { writeEnvironmentFile } from '../../src/up/environment-files.ts';
import { prepareStateDirectory } from '../../src/up/state-directory.ts';
import { openRoad } from '../gateway/support/database-road.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { fleetMaker } from './support/fleet.ts';
import { type CliRun, plainLines, runCli, startCli } from './support/run-cli.ts';

const APP = '11111111-1111-4111-8111-111111111111';
const WAITING = '33333333-3333-4333-8333-333333333333';
const TWIN = '33333333-4444-4333-8333-333333333333';
const JOB = 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb';

// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let database: TestDatabase;
let env: Record<string, string>;
const cli = (...args: string[]): Promise<CliRun> => runCli(args, { env });
const head = async (): Promise<number> =>
  Number((await database.pool.query('SELECT count(*) FROM log.events')).rows[0].count);

beforeAll(async () => {
  database = await createTestDatabase();
  env = { DATABASE_URL: database.url };
  await using fleet = fleetMaker(database.url);
  await fleet.enrollNode(APP, 'app-one');
  await fleet.requestNode(WAITING, 'app-two');
  await fleet.requestNode(TWIN, 'app-three');
  // Heard in an hour: however slow this machine is, the node does not fall silent meanwhile.
  await database.pool.query(`INSERT INTO telemetry.node_liveness VALUES ($1, now() + interval '1 hour', 40)`, [APP]);
});

afterAll(() => database.drop());

describe('fleet admit', () => {
  test('--dry-run: says what it would append, and appends nothing', async () => {
    const before = await head();
    const run = await cli('fleet', 'admit', 'app-one', '--dry-run');
    expect({ ...run, events: await head() }).toEqual({
      code: 0,
      stdout: 'would append node_admitted: app-one is schedulable\n',
      stderr: '',
      events: before,
    });
  });

  test('active and fresh: done, with the position; repeated: no new event; the actor is the operator', async () => {
    const first = await cli('fleet', 'admit', 'app-one');
    const position = await head();
    expect(first).toEqual({ code: 0, stdout: `app-one is schedulable (node_admitted at ${position})\n`, stderr: '' });
    const again = await cli('fleet', 'admit', 'app-one');
    expect({ ...again, events: await head() }).toEqual({
      code: 0,
      stdout: 'app-one was schedulable already, nothing was appended\n',
      stderr: '',
      events: position,
    });
    const { rows } = await database.pool.query(
      'SELECT actor_kind, actor_id FROM fleet.fleet_events WHERE position = $1',
      [position],
    );
    expect(rows).toEqual([{ actor_kind: 'operator', actor_id: 'tester@test' }]);
  });

  test('still provisioning: exit 1 with the reason and what to do', async () => {
    expect(await cli('fleet', 'admit', 'app-two')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'pushleft-controller: the node is provisioning\n' +
        '  wait until it has enrolled, see `pushleft-controller fleet why`\n',
    });
  });

  test('unknown and ambiguous nodes, --json: exit 1 and one document with a code', async () => {
    const [unknown, ambiguous] = await Promise.all([
      cli('fleet', 'admit', 'nobody', '--json'),
      cli('fleet', 'admit', '33333333', '--json'),
    ]);
    expect([unknown.code, ambiguous.code, unknown.stderr]).toEqual([1, 1, '']);
    expect([JSON.parse(unknown.stdout).error, JSON.parse(ambiguous.stdout).error]).toMatchObject([
      { code: 'node_unknown', message: 'no node is known by nobody' },
      { code: 'node_ambiguous', message: '33333333 fits more than one node' },
    ]);
  });
});

describe('job queue', () => {
  test('with an id, twice: queued once', async () => {
    const args = ['job', 'queue', 'diagnose_host', '--node', 'app-one', '--id', JOB, '--payload', '-', '--json'];
    const first = await runCli(args, { env, stdin: '{"checks":["clock"]}' });
    const position = await head();
    const again = await runCli(args, { env, stdin: '{"checks":["clock"]}' });
    expect(JSON.parse(first.stdout)).toEqual({
      job_id: JOB,
      dry_run: false,
      changed: true,
      events: [{ position, type: 'job_queued' }],
    });
    expect([again.code, JSON.parse(again.stdout).changed, await head()]).toEqual([0, false, position]);
  });

  test('the connection is lost at the commit and does not come back: exit 3, and how to repeat it', async () => {
    await using road = await openRoad();
    const committed = road.swallowCommit(() => void road.close());
    const args = ['job', 'queue', 'diagnose_host', '--pool', 'build'];
    const run = await runCli([...args, '--json'], { env: { DATABASE_URL: road.via(database.url) } });
    await committed;
    const { code, remedy, details } = JSON.parse(run.stdout).error;
    expect([run.code, code, remedy]).toEqual([
      3,
      'outcome_unknown',
      `repeat the command with \`--id ${details.job_id}\`, which queues it once`,
    ]);
    const again = await cli(...args, '--id', details.job_id, '--json');
    expect(JSON.parse(again.stdout)).toMatchObject({ job_id: details.job_id, changed: false });
  });

  test('a payload that the kind does not know, NUL in it, no JSON: exit 2 and one line, nothing is appended', async () => {
    const before = await head();
    const queue = (stdin: string) =>
      runCli(['job', 'queue', 'diagnose_host', '--pool', 'build', '--payload', '-'], { env, stdin });
    const runs = await Promise.all([queue('{"checks":["\\u0000"]}'), queue('{"command":"rm"}'), queue('\u0000')]);
    expect(runs.map(({ code, stdout }) => [code, stdout])).toEqual([
      [2, ''],
      [2, ''],
      [2, ''],
    ]);
    expect(runs.every(({ stderr }) => /^pushleft-controller: [^\n\0]+\n$/.test(stderr))).toBe(true);
    expect(await head()).toBe(before);
  });

  test('neither node nor pool: exit 2', async () => {
    const run = await cli('job', 'queue', 'diagnose_host');
    expect([run.code, run.stderr.split('\n')[0]]).toEqual([
      2,
      'pushleft-controller: exactly one of the following must be provided: --node, --pool',
    ]);
  });
});

describe('job queue --wait', () => {
  test('an agent completes the job: shows the report, exit 0; and --wait-seconds too short: exit 3', async () => {
    const { args, node } = { args: ['job', 'queue', 'diagnose_host', '--node', 'app-one', '--wait'], node: APP };
    const short = await cli(...args, '--wait-seconds', '1', '--json');
    expect([short.code, JSON.parse(short.stdout).error.code]).toEqual([3, 'wait_timeout']);
    await using fleet = fleetMaker(database.url);
    // Jobs that were queued before go first.
    while (await fleet.completeQueued(node));
    const waiting = cli(...args);
    await waitFor(() => fleet.completeQueued(node), {
      what: 'the job is queued, leased and completed',
      deadlineMs: 60_000,
      intervalMs: 100,
    });
    const run = await waiting;
    expect([run.code, run.stderr]).toEqual([0, '']);
    expect(plainLines(run)).toEqual(
      expect.arrayContaining(['CHECK  STATUS  TIME  DETAIL', 'state_files  pass  3 ms  state_files is well']),
    );
  });
});

describe('verification', () => {
  test('a row that was tampered with: exit 1 and its name; rebuilt: nothing to complain of', async () => {
    await database.pool.query(`UPDATE fleet.fleet_nodes SET region = 'hel1' WHERE node_id = $1`, [WAITING]);
    const found = await cli('projections', 'verify');
    expect([found.code, plainLines(found)[0]]).toEqual([1, `fleet_nodes ${WAITING} differs in region`]);
    const rebuilt = await cli('projections', 'rebuild');
    expect([rebuilt.code, rebuilt.stderr]).toEqual([0, '']);
    expect((await cli('projections', 'verify')).code).toBe(0);
  });

  test('an event that was edited: exit 1 and its position', async () => {
    const edited = await createTestDatabase();
    {
      await using fleet = fleetMaker(edited.url);
      await fleet.enrollNode(APP, 'app-one');
    }
    await edited.pool.query('ALTER TABLE log.events DISABLE TRIGGER ALL');
    await edited.pool.query(`UPDATE log.events SET body = replace(body, 'fsn1', 'nbg1') WHERE position = 1`);
    const run = await runCli(['log', 'verify'], { env: { DATABASE_URL: edited.url } });
    await edited.drop();
    expect([run.code, plainLines(run)[0]]).toEqual([1, 'position 1: hash mismatch']);
  });
});

describe('fleet certificates revoke', () => {
  test('once: the certificate shows as revoked; repeated: nothing to revoke', async () => {
    const first = await cli('fleet', 'certificates', 'revoke', 'app-one');
    expect(first.stdout).toBe(`the certificates of app-one are revoked (certificates_revoked at ${await head()})\n`);
    const again = await cli('fleet', 'certificates', 'revoke', 'app-one');
    expect(again.stdout).toBe('app-one has no certificate to revoke, nothing was appended\n');
    const why = JSON.parse((await cli('fleet', 'why', 'app-one', '--json')).stdout);
    expect(why.hindrances.map(({ code }: { code: string }) => code)).toEqual(['certificates_revoked']);
  });
});

describe('usage and configuration', () => {
  test.for([
    ['a flag that does not exist', ['fleet', 'list', '--colour'], 'nonexistent flag: --colour'],
    [
      'an option outside its set',
      ['fleet', 'list', '--pool', 'gpu'],
      'expected --pool=gpu to be one of: build, application, database',
    ],
    ['a missing argument', ['fleet', 'show'], 'missing 1 required arg: node'],
    ['a node name that cannot be one', ['fleet', 'show', 'a\nb'], 'a node, job or deployment is named by'],
    ['a moment that is none', ['fleet', 'list', '--at', 'yesterday'], '--at yesterday is not a log position'],
    ['a position past the end', ['fleet', 'list', '--at', '999999'], '--at 999999 is past the end of the log'],
    ['an unknown command', ['fleet', 'lst'], 'did you mean `pushleft-controller fleet list`?'],
  ] as const)('%s: exit 2 and says so', async ([, args, message]) => {
    const run = await cli(...args);
    expect([run.code, run.stdout]).toEqual([2, '']);
    expect(run.stderr).toContain(message);
    expect(run.stderr).not.toMatch(/\n\s+at /);
  });

  test('no fleet here: exit 2, names the fix', async () => {
    const run = await runCli(['fleet', 'list']);
    expect(run).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'pushleft-controller: no fleet found: there is no .pushleft folder here or above, and DATABASE_URL is not set\n' +
        '  start one with `npm start`, or set DATABASE_URL\n',
    });
  });

  test('the database does not answer: exit 3; wrong password: exit 2; never a password in the output', async () => {
    const [gone, login] = await Promise.all([
      runCli(['fleet', 'list'], { env: { DATABASE_URL: 'postgres://u:canary@127.0.0.1:1/fleet' } }),
      runCli(['fleet', 'list'], { env: { DATABASE_URL: database.url.replace(/:[^:@/]+@/, ':canary@') } }),
    ]);
    expect([gone.code, login.code]).toEqual([3, 2]);
    expect(gone.stderr + login.stderr).not.toContain('canary');
  });

  test('a database of another version: exit 2, says to migrate', async () => {
    const old = await createTestDatabase();
    await old.pool.query(`UPDATE fleet.definition SET digest = 'other'`);
    const runs = await Promise.all([
      runCli(['fleet', 'list'], { env: { DATABASE_URL: old.url } }),
      runCli(['fleet', 'admit', 'x', '--dry-run'], { env: { DATABASE_URL: old.url } }),
    ]);
    await old.drop();
    expect(runs.map(({ code }) => code)).toEqual([2, 2]);
    expect(runs[0]?.stderr).toContain('db migrate');
  });
});

describe('finding the fleet and its output', () => {
  test('from a sub-folder of the one that holds .pushleft, no variable set: found', async () => {
    await using folder = await temporaryDirectory();
    const stateDir = await prepareStateDirectory(join(folder.path, '.pushleft'));
    await writeEnvironmentFile(stateDir, 'operator', { DATABASE_URL: database.url });
    const below = join(folder.path, 'deep', 'below');
    await mkdir(below, { recursive: true });
    const [found, chosen] = await Promise.all([
      runCli(['fleet', 'list', '--json'], { cwd: below }),
      runCli(['fleet', 'list', '--json', '--state-dir', stateDir], {
        env: { DATABASE_URL: 'postgres://127.0.0.1:1/x' },
      }),
    ]);
    expect([found.code, chosen.code]).toEqual([0, 0]);
    expect(JSON.parse(found.stdout).nodes).toHaveLength(3);
  });

  test('a reader that goes after one line: no complaint, exit 0', async () => {
    const child = startCli(['db', 'shell', '-c', 'SELECT repeat(chr(120), 1000) FROM generate_series(1, 20000)'], {
      env,
    });
    let stderr = '';
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    child.stdout.once('data', () => child.stdout.destroy());
    const [code] = await once(child, 'close');
    expect([code, stderr]).toEqual([0, '']);
  });

  test('fleet events --follow --json: what is there, then what comes; Ctrl-C ends it in order', async () => {
    const child = startCli(['fleet', 'events', '--follow', '--json', '--limit', '1'], { env });
    let stdout = '';
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    const closed = once(child, 'close');
    await waitFor(() => stdout.includes('\n'), { what: 'the last event is shown' });
    const last = await head();
    await using fleet = fleetMaker(database.url);
    await fleet.requestNode('44444444-4444-4444-8444-444444444444', 'app-four');
    await waitFor(() => stdout.includes('app-four'), { what: 'the new event is shown' });
    child.kill('SIGINT');
    const [code] = await closed;
    const positions = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).position);
    expect([code, positions]).toEqual([0, [last, last + 1]]);
  });
});

describe('db', () => {
  test('shell without --write: reads, and refuses to write', async () => {
    const [reads, writes] = await Promise.all([
      cli('db', 'shell', '-c', `SELECT ';' AS semicolon, NULL AS nothing; SELECT 1 AS one`),
      cli('db', 'shell', '-c', 'DELETE FROM telemetry.commands'),
    ]);
    expect(plainLines(reads)).toEqual(['semicolon  nothing', ';  ∅', '(1 row)', 'one', '1', '(1 row)']);
    expect([writes.code, writes.stderr]).toEqual([
      1,
      'pushleft-controller: ERROR: only statements that read are taken; see --write\n',
    ]);
  });

  test('shell --write: the log refuses changes all the same', async () => {
    const run = await cli('db', 'shell', '--write', '-c', `UPDATE log.events SET body = ''`);
    expect([run.code, run.stderr]).toEqual([1, 'pushleft-controller: ERROR PF003: the event log is append-only\n']);
  });

  test('migrate on a migrated database: nothing to do', async () => {
    expect((await cli('db', 'migrate')).stdout).toBe('nothing to do\n');
  });

  test('roles without a database: prints grants', async () => {
    const { stdout, code } = await runCli(['db', 'roles']);
    expect([code, stdout.includes('GRANT EXECUTE ON FUNCTION log.append')]).toEqual([0, true]);
  });
});
