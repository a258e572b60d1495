import { hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { initializeCaCommand } from '../../src/commands/ca.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import { appendCommand } from '../gateway/support/renewal.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { fleetMaker } from './support/fleet.ts';
import { type CliRun, plainLines, runCli } from './support/run-cli.ts';

const ONE = '11111111-1111-4111-8111-111111111111';
const TWO = '22222222-2222-4222-8222-222222222222';
const THREE = '33333333-3333-4333-8333-333333333333';
const BOOTS = ['aaaaaaaa-aaaa-4aaa-8aaa-aaaaaaaaaaaa', 'bbbbbbbb-bbbb-4bbb-8bbb-bbbbbbbbbbbb'];
const CONFLICT = `two hosts use this identity: addresses 192.0.2.1, 192.0.2.2; boot ids ${BOOTS.join(', ')}`;

// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

interface Row {
  readonly name: string;
  readonly certificate_id: string;
  readonly fingerprint: string;
  readonly status: string;
  readonly issuer: string;
  readonly revoked_reason: string | null;
}

let database: TestDatabase;
let env: Record<string, string>;
/** Where the log stood when every node had its certificate. */
let whole: number;

const cli = (...args: string[]): Promise<CliRun> => runCli(args, { env });
const certificates = (...args: string[]) => cli('fleet', 'certificates', ...args);
const rows = async (...args: string[]): Promise<Row[]> =>
  JSON.parse((await certificates('list', ...args, '--json')).stdout).certificates;
const head = async (): Promise<number> =>
  Number((await database.pool.query('SELECT count(*) FROM log.events')).rows[0].count);

beforeAll(async () => {
  database = await createTestDatabase();
  env = { DATABASE_URL: database.url };
  await using fleet = fleetMaker(database.url);
  const ca_sha256 = hash('sha256', 'ca');
  const ca_pem = '-----BEGIN CERTIFICATE-----\nYQ==\n-----END CERTIFICATE-----\n';
  await fleet.give(initializeCaCommand, { ca_sha256, ca_pem, not_after: Date.now() + 86_400_000 });
  await fleet.enrollNode(ONE, 'app-one');
  await fleet.enrollNode(TWO, 'app-two');
  await fleet.enrollNode(THREE, 'app-three');
  await fleet.give(appendCommand, {
    stream: nodeStream(TWO),
    events: [
      {
        type: 'certificate_conflict_seen',
        data: {
          node_id: TWO,
          certificate_id: (
            await database.pool.query('SELECT certificate_id FROM fleet.fleet_node_certificates WHERE node_id = $1', [
              TWO,
            ])
          ).rows[0].certificate_id,
          boot_ids: BOOTS,
          addresses: ['192.0.2.1', '192.0.2.2'],
        },
      },
    ],
  });
  whole = await head();
});

afterAll(() => database.drop());

describe('fleet certificates list', () => {
  test('of all nodes: one line each, the newest first', async () => {
    const run = await certificates('list');
    const [three, two, one] = await rows();
    const line = ({ certificate_id, name }: Row) =>
      expect.stringMatching(
        new RegExp(`^${certificate_id.slice(0, 12)}  ${name}  enrollment  current  valid(?:  \\S+Z){3}  -$`),
      );
    expect([run.code, plainLines(run)]).toEqual([
      0,
      [
        'SERIAL  NODE  CAUSE  ISSUER  STATUS  ISSUED  FIRST USED  ENDS  REPLACES',
        ...[three, two, one].flatMap((row) => (row === undefined ? ['no row'] : [line(row)])),
      ],
    ]);
    expect([three?.name, two?.name, one?.name]).toEqual(['app-three', 'app-two', 'app-one']);
  });

  test('--limit: the newest, and it says that there are more', async () => {
    const run = await certificates('list', '--limit', '1');
    expect(plainLines(run).slice(1)).toEqual([
      expect.stringContaining('app-three'),
      'only the newest 1: --limit shows more',
    ]);
  });

  test('an unknown node: exit 1', async () => expect((await certificates('list', 'nobody')).code).toBe(1));
});

describe('fleet certificates revoke', () => {
  test('by the beginning of a serial number as openssl prints it: that one only; repeated: no new event', async () => {
    const [one] = await rows('app-one');
    const args = ['revoke', '--serial', one?.certificate_id.slice(0, 10).toUpperCase() ?? ''];
    const dry = await certificates(...args, '--dry-run');
    expect([dry.stdout, await head()]).toEqual([
      `would append certificates_revoked: certificate ${one?.certificate_id.slice(0, 12)} of app-one is revoked\n`,
      whole,
    ]);
    const first = await certificates(...args);
    expect(first.stdout).toBe(
      `certificate ${one?.certificate_id.slice(0, 12)} of app-one is revoked (certificates_revoked at ${whole + 1})\n`,
    );
    const again = await certificates(...args);
    expect([again.code, again.stdout, await head()]).toEqual([
      0,
      `certificate ${one?.certificate_id.slice(0, 12)} of app-one was revoked before, nothing was appended\n`,
      whole + 1,
    ]);
  });

  test('by its fingerprint with colons: that one', async () => {
    const [three] = await rows('app-three');
    const colons = three?.fingerprint.toUpperCase().replaceAll(/(..)(?=.)/g, '$1:') ?? '';
    const done = JSON.parse((await certificates('revoke', '--fingerprint', colons, '--json')).stdout);
    expect(done).toMatchObject({ name: 'app-three', certificate_id: three?.certificate_id, changed: true });
  });

  test('unknown, no hex, nothing or two things named: refused', async () => {
    const runs = await Promise.all([
      certificates('revoke', '--serial', 'ffffffff'),
      certificates('revoke', '--serial', 'xyz'),
      certificates('revoke'),
      certificates('revoke', 'app-two', '--serial', 'ffffffff'),
    ]);
    expect(runs.map(({ code, stderr }) => [code, stderr.split('\n')[0]])).toEqual([
      [1, 'pushleft-controller: no certificate is known by ffffffff'],
      [2, 'pushleft-controller: a certificate is named by 4 to 64 hex digits'],
      [2, 'pushleft-controller: name a node, or one certificate by --serial or --fingerprint'],
      [2, 'pushleft-controller: name a node, or one certificate by --serial or --fingerprint'],
    ]);
  });
});

describe('afterwards', () => {
  test('list: only what is in force; --all: the revoked too, with the reason; --at before: as it was', async () => {
    const seen = (listed: Row[]) => listed.map(({ name, status, revoked_reason }) => [name, status, revoked_reason]);
    const [now, all, before] = await Promise.all([rows(), rows('--all'), rows('--at', String(whole))]);
    expect([now, all, before].map(seen)).toEqual([
      [['app-two', 'valid', null]],
      [
        ['app-three', 'revoked', 'operator'],
        ['app-two', 'valid', null],
        ['app-one', 'revoked', 'operator'],
      ],
      [
        ['app-three', 'valid', null],
        ['app-two', 'valid', null],
        ['app-one', 'valid', null],
      ],
    ]);
    expect(plainLines(await certificates('list', 'app-one'))).toEqual([
      'no certificates in force; --all shows those that ended',
    ]);
  });

  test('why: all revoked, all expired: each says so, and that reenroll lets the node back in', async () => {
    await database.pool.query(
      `UPDATE fleet.fleet_node_certificates SET not_after = '2026-01-01T00:00:00Z', revoked_at = NULL WHERE node_id = $1`,
      [THREE],
    );
    const why = async (name: string) => JSON.parse((await cli('fleet', 'why', name, '--json')).stdout).hindrances[0];
    expect(await Promise.all([why('app-one'), why('app-three')])).toEqual([
      {
        code: 'certificates_revoked',
        message: expect.stringMatching(
          /^the node's newest certificate was revoked \(operator, at \S+Z\) and none is in force: every request of its agent is refused$/,
        ),
        remedy: 'run `pushleft-controller fleet reenroll app-one` and carry the file to its host',
      },
      {
        code: 'certificate_expired',
        message:
          "the node's newest certificate expired at 2026-01-01T00:00:00Z and none is in force: every request of its agent is refused",
        remedy: 'run `pushleft-controller fleet reenroll app-three` and carry the file to its host',
      },
    ]);
  });

  test('two hosts with one identity: list, show and why say so, with addresses and boot ids', async () => {
    const [list, show, why, json] = await Promise.all([
      cli('fleet', 'list'),
      cli('fleet', 'show', 'app-two'),
      cli('fleet', 'why', 'app-two'),
      cli('fleet', 'list', '--json'),
    ]);
    expect(plainLines(list).filter((line) => /identity|conflict/.test(line))).toEqual([
      expect.stringContaining('active (identity conflict)'),
      `app-two: ${CONFLICT}`,
    ]);
    expect(plainLines(show)).toContainEqual(
      expect.stringMatching(new RegExp(`^conflict  ${CONFLICT} \\(at \\S+Z\\)$`)),
    );
    expect(plainLines(why)).toContain(`- ${CONFLICT}`);
    const { nodes } = JSON.parse(json.stdout);
    expect(nodes.map(({ conflict }: { conflict: unknown }) => conflict)).toEqual([
      null,
      null,
      { addresses: ['192.0.2.1', '192.0.2.2'], boot_ids: BOOTS, seen_at: expect.stringMatching(/^\d{4}-.*Z$/) },
    ]);
  });
});
