import { hash, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  abortRotationCommand,
  beginRotationCommand,
  completeRotationCommand,
  initializeCaCommand,
  switchIssuerCommand,
} from '../../src/commands/ca.ts';
import { authorizeRenewalCommand, recordFirstUseCommand, recordIssuedCommand } from '../../src/commands/certificate.ts';
import { armReenrollmentCommand } from '../../src/commands/node.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { pem } from '../support/events.ts';
import { type FleetMaker, fleetMaker } from './support/fleet.ts';
import { plainLines, runCli, startCli } from './support/run-cli.ts';

// What `FleetMaker.enrollNode` has its certificates issued by.
const OLD = hash('sha256', 'ca');
const NEW = hash('sha256', 'the new ca');
const ROTATION = 'cccccccc-0000-4000-8000-000000000001';
const NODES = {
  moved: '11111111-1111-4111-8111-111111111111',
  unused: '22222222-2222-4222-8222-222222222222',
  late: '33333333-3333-4333-8333-333333333333',
} as const;
const CA_END = Date.parse('2036-01-01T00:00:00Z');
const DAY_MS = 86_400_000;
const ISO = expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]{12}Z$/);
const short = (sha256: string) => `${sha256.slice(0, 16)}…`;

// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 });

const cleanup = new AsyncDisposableStack();
let database: TestDatabase;
let fleet: FleetMaker;
let env: Record<string, string>;

const status = (...args: string[]) => runCli(['fleet', 'ca', 'status', ...args], { env });
const statusJson = async () => JSON.parse((await status('--json')).stdout);

beforeAll(async () => {
  database = cleanup.adopt(await createTestDatabase(), (created) => created.drop());
  env = { DATABASE_URL: database.url };
  fleet = cleanup.use(fleetMaker(database.url));
});
afterAll(() => cleanup.disposeAsync());

/** A gateway that stays alive for this file; `servesMs` is what is left of a certificate made for 90 days. */
async function beacon(
  program: string,
  trusted: readonly string[],
  { servesMs = 80 * DAY_MS, error = null }: { servesMs?: number; error?: object | null } = {},
): Promise<void> {
  const end = Date.now() + servesMs;
  const pki = {
    trusted_ca_sha256s: trusted,
    issuer_ca_sha256: OLD,
    previous_issuer_ca_sha256: null,
    serving: {
      fingerprint_sha256: hash('sha256', program),
      issuer_ca_sha256: OLD,
      not_before: new Date(end - 90 * DAY_MS).toISOString(),
      not_after: new Date(end).toISOString(),
    },
    loaded_at: new Date().toISOString(),
    error,
  };
  await database.pool.query('DELETE FROM telemetry.programs WHERE program = $1', [program]);
  await database.pool.query(
    `INSERT INTO telemetry.programs VALUES ($1, 'gateway', $2, now(), now() + interval '1 hour')`,
    [program, JSON.stringify({ pki })],
  );
}

/** Renews the certificate of this name by a CA; `use` tells the log that it leased with the new one. Returns the certificate's end (ms). */
async function renew(
  nodeId: string,
  { use, from = 'fingerprint of', to = 'renewed', by = NEW }: { use: boolean; from?: string; to?: string; by?: string },
): Promise<number> {
  const certificate_id = hash('sha256', `${to} of ${nodeId}`).slice(0, 16);
  const fingerprint = hash('sha256', `${to} ${nodeId}`);
  const tbs_sha256 = hash('sha256', certificate_id);
  const notAfter = Date.now() + DAY_MS;
  await fleet.give(authorizeRenewalCommand, {
    fingerprint: hash('sha256', `${from} ${nodeId}`),
    certificate_id,
    public_key_spki: Buffer.from('another key').toString('base64'),
    tbs_sha256,
    issuer_ca_sha256: by,
    not_before: Date.now(),
    not_after: notAfter,
  });
  await fleet.give(recordIssuedCommand, {
    certificate_id,
    node_id: nodeId,
    fingerprint,
    certificate_pem: pem('MIIB'),
    tbs_sha256,
  });
  if (use) await fleet.give(recordFirstUseCommand, { fingerprint });
  return notAfter;
}

/** One story: each test goes on where the one before ended. */
describe('fleet ca status', () => {
  test('a log without a CA: says so and what to run', async () => {
    const run = await status();
    expect({ ...run, stdout: plainLines(run) }).toEqual({
      code: 0,
      stdout: ["the log does not know the fleet's CA: run `pushleft-controller fleet ca init`"],
      stderr: '',
    });
    expect(await statusJson()).toEqual({
      position: 0,
      at: null,
      ca: null,
      rotation: null,
      nodes: 0,
      nodes_moved: 0,
      node_states: [],
      blockers: [],
      telemetry: { gateways: [] },
      host: null,
    });
  });

  test('no rotation: the one CA, all nodes on it; --watch shows it once and ends', async () => {
    await fleet.give(initializeCaCommand, { ca_sha256: OLD, ca_pem: pem('MIIB'), not_after: CA_END });
    await fleet.enrollNode(NODES.moved, 'app-one');
    await fleet.enrollNode(NODES.unused, 'app-two');
    await fleet.enrollNode(NODES.late, 'app-three');
    const run = await status('--watch');
    expect({ ...run, stdout: plainLines(run) }).toEqual({
      code: 0,
      stdout: [
        `CA ${short(OLD)}  issues, ends 2036-01-01T00:00:00Z`,
        'no rotation is under way',
        'nodes on the CA that stays: 3 of 3',
        '',
        'GATEWAY  TRUSTS  ISSUES BY  SERVES  ENDS  LOADED',
      ],
      stderr: '',
    });
  });

  test('begun, one gateway blind with an error and an ending certificate: warned of with each remedy', async () => {
    await fleet.give(beginRotationCommand, {
      rotation_id: ROTATION,
      previous_ca_sha256: OLD,
      ca_sha256: NEW,
      ca_pem: pem('MIIB'),
      not_after: CA_END,
    });
    await beacon('gateway@good:1', [OLD, NEW]);
    const since = '2026-01-02T03:04:05.000Z';
    await beacon('gateway@late:1', [OLD], {
      servesMs: 3 * DAY_MS,
      error: { code: 'bad', message: 'no bundle', since },
    });
    const lines = plainLines(await status());
    expect(lines).toContainEqual(
      expect.stringMatching(new RegExp(`^rotation ${ROTATION}: begun, since \\d{4}-.*Z, refused attempts: 0$`)),
    );
    const [good, late] = ['gateway@good:1', 'gateway@late:1'].map((name) =>
      lines.find((line) => line.startsWith(name)),
    );
    expect(good).toMatch(
      new RegExp(`^gateway@good:1  ${short(OLD)} ${short(NEW)}  ${short(OLD)}  ${short(OLD)}  [\\d:TZ-]+  \\d+s ago$`),
    );
    expect(late).toContain('(ending: fleet ca reissue-gateway)');
    expect(lines.filter((line) => line.startsWith('warning'))).toEqual([
      `warning: gateway@late:1: run fleet ca sync on its host, it does not trust ${short(NEW)}`,
      'warning: gateway@late:1: no bundle (since 2026-01-02T03:04:05Z)',
    ]);
    const { telemetry } = await statusJson();
    expect(telemetry.gateways).toEqual([
      expect.objectContaining({ program: 'gateway@good:1', missing_ca_sha256s: [] }),
      {
        program: 'gateway@late:1',
        missing_ca_sha256s: [NEW],
        pki: {
          trusted_ca_sha256s: [OLD],
          issuer_ca_sha256: OLD,
          previous_issuer_ca_sha256: null,
          serving: {
            fingerprint_sha256: hash('sha256', 'gateway@late:1'),
            issuer_ca_sha256: OLD,
            not_before: ISO,
            not_after: ISO,
            level: 'ending',
          },
          loaded_at: ISO,
          error: { code: 'bad', message: 'no bundle', since },
        },
      },
    ]);
  });

  test('issuing, a completion refused: each node moved, renewed but never used, or never renewed', async () => {
    await beacon('gateway@late:1', [OLD, NEW]);
    await fleet.give(switchIssuerCommand, { rotation_id: ROTATION });
    await renew(NODES.moved, { use: true });
    const notAfter = await renew(NODES.unused, { use: false });
    await expect(fleet.give(completeRotationCommand, {})).rejects.toThrow('ca_rotation_blocked');
    const lines = plainLines(await status());
    expect(lines[1]).toBe(`CA ${short(OLD)}  trusted, ends 2036-01-01T00:00:00Z`);
    expect(lines[0]).toBe(`CA ${short(NEW)}  issues, ends 2036-01-01T00:00:00Z`);
    expect(lines[2]).toMatch(/: issuing, since .*, refused attempts: 1$/);
    expect(lines.slice(3, 7)).toEqual([
      'nodes on the CA that stays: 1 of 3',
      expect.stringMatching(/^app-three: never renewed, expires at \d{4}-.*Z$/),
      `app-two: renewed but never used, expires at ${new Date(notAfter).toISOString().slice(0, 19)}Z`,
      'app-one: moved',
    ]);
    expect(await statusJson()).toMatchObject({
      ca: {
        issuing_ca_sha256: NEW,
        trusted: [{ sha256: NEW }, { sha256: OLD, not_after: '2036-01-01T00:00:00.000Z' }],
      },
      rotation: { rotation_id: ROTATION, status: 'issuing', begun_at: ISO, issuing_at: ISO, refused_attempts: 1 },
      nodes: 3,
      nodes_moved: 1,
      node_states: [
        { node_id: NODES.moved, name: 'app-one', moved: true, blocked_by: [] },
        { node_id: NODES.late, name: 'app-three', moved: false, blocked_by: ['never_renewed'] },
        { node_id: NODES.unused, name: 'app-two', moved: false, blocked_by: ['renewed_never_used'] },
      ],
      blockers: [
        { node_id: NODES.late, reason: 'never_renewed', until: ISO },
        { node_id: NODES.unused, reason: 'renewed_never_used', until: new Date(notAfter).toISOString() },
      ],
    });
  });

  test('--at before the new CA issued: as it was then, without what gateways say now', async () => {
    const { rows } = await database.pool.query<{ position: number }>(
      "SELECT position FROM log.events WHERE type = 'ca_issuer_switched'",
    );
    const before = String((rows[0]?.position ?? 0) - 1);
    expect(JSON.parse((await status('--at', before, '--json')).stdout)).toMatchObject({
      position: Number(before),
      ca: { issuing_ca_sha256: OLD, next_ca_sha256: NEW },
      rotation: { status: 'begun', refused_attempts: 0 },
      nodes_moved: 0,
      telemetry: null,
    });
    expect(plainLines(await status('--at', before)).at(-1)).toContain(`as it was at position ${before}`);
  });

  test.each([['--json'], ['--at', '1']])('--watch with %s: a usage error', async (...args) => {
    expect(await status('--watch', ...args)).toMatchObject({ code: 2 });
  });

  test('--watch until the rotation is completed: one block a change, then it ends', async () => {
    const child = startCli(['fleet', 'ca', 'status', '--watch'], { env });
    const [closed, stderr] = [once(child, 'close'), text(child.stderr)];
    let stdout = '';
    const shows = (what: string) => vi.waitFor(() => expect(stdout).toContain(what), { timeout: 30_000, interval: 50 });
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    await shows('1 of 3');
    await fleet.give(recordFirstUseCommand, { fingerprint: hash('sha256', `renewed ${NODES.unused}`) });
    await shows('2 of 3');
    await renew(NODES.late, { use: true });
    await shows('3 of 3');
    await fleet.give(completeRotationCommand, {});
    expect(await closed).toEqual([0, null]);
    expect(await stderr).toBe('');
    const blocks = stdout.split(/^(?=CA .* issues,)/m);
    expect(blocks.at(-1)).toContain('no rotation is under way');
    // Ages are left out: two blocks in a row differ in what they tell.
    const told = blocks.map((block) => block.replaceAll(/\d+s ago/g, ''));
    expect(told.filter((block, i) => block === told[i - 1])).toEqual([]);
  });

  test('--watch that is interrupted: ends well', async () => {
    const rotation_id = randomUUID();
    const next = { ca_sha256: hash('sha256', 'a third ca'), ca_pem: pem('MIIB'), not_after: CA_END };
    await fleet.give(beginRotationCommand, { rotation_id, previous_ca_sha256: NEW, ...next });
    const child = startCli(['fleet', 'ca', 'status', '--watch'], { env });
    const closed = once(child, 'close');
    await once(child.stdout, 'data');
    child.kill('SIGINT');
    expect(await closed).toEqual([0, null]);
    await fleet.give(abortRotationCommand, {});
  });

  test('a node that has moved has a secret that came without the new CA: it has moved, and blocks', async () => {
    const [rotation_id, last] = [randomUUID(), hash('sha256', 'the last ca')];
    const next = { ca_sha256: last, ca_pem: pem('MIIB'), not_after: CA_END };
    await fleet.give(beginRotationCommand, { rotation_id, previous_ca_sha256: NEW, ...next });
    for (const program of ['gateway@good:1', 'gateway@late:1']) await beacon(program, [NEW, last]);
    await fleet.give(switchIssuerCommand, { rotation_id });
    await renew(NODES.moved, { use: true, from: 'renewed', to: 'renewed again', by: last });
    const secret = { secret_sha256: hash('sha256', 'blind'), ttl_ms: 900_000, ca_sha256s: [NEW] };
    await fleet.give(armReenrollmentCommand, { node_id: NODES.moved, ...secret });
    expect(await statusJson()).toMatchObject({
      nodes_moved: 1,
      node_states: [{ name: 'app-one', moved: true, blocked_by: ['secret_without_new_ca'] }, {}, {}],
    });
  });
});
