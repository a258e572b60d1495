import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHetznerStub } from '../../stubs/hetzner/stub.ts';
import { caPem, releaseKeys } from '../hetzner/cloud-init/support.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { plainLines, runCli } from './support/run-cli.ts';

const TOKEN = 'canary-token-of-the-stub';
const ORDER = ['--pool', 'application', '--region', 'fsn1', '--type', 'cx23'];

const stub = createHetznerStub({ token: TOKEN, actionMs: 10 });
let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let database: TestDatabase;
let listening: Awaited<ReturnType<typeof stub.listen>>;
let env: Record<string, string>;
const provision = (...args: string[]) => runCli(['fleet', 'provision', ...args], { env });

beforeAll(async () => {
  [folder, database, listening] = await Promise.all([temporaryDirectory(), createTestDatabase(), stub.listen()]);
  const ca = join(folder.path, 'ca.pem');
  await writeFile(ca, await caPem());
  env = {
    DATABASE_URL: database.url,
    HETZNER_API_TOKEN: TOKEN,
    HETZNER_API_URL: listening.url,
    PUSHLEFT_FLEET_SSH_KEYS: 'operator',
    PUSHLEFT_FLEET_OPERATOR_CIDRS: '203.0.113.0/24',
    PUSHLEFT_FLEET_GATEWAY_CA_FILE: ca,
    PUSHLEFT_GATEWAY_URL: 'https://gateway.example:8443',
    PUSHLEFT_ENROLL_URL: 'https://gateway.example:8444',
    PUSHLEFT_RELEASE_URL: 'https://releases.example/agent',
    PUSHLEFT_RELEASE_PUBKEY: releaseKeys().publicKey,
    PUSHLEFT_AGENT_VERSION: '0.1.0',
  };
});

afterAll(async () => {
  await Promise.all([listening.close(), database.drop()]);
  await folder[Symbol.asyncDispose]();
});

describe('fleet provision', () => {
  test('--dry-run: checks at the provider, orders and appends nothing', async () => {
    const run = await provision(...ORDER, '--name', 'app-one', '--dry-run');
    expect([run.code, run.stdout]).toEqual([
      0,
      `would order app-one: cx23 in fsn1 with ubuntu-24.04\nCA bundle: 1 CA from ${env['PUSHLEFT_FLEET_GATEWAY_CA_FILE']}\n`,
    ]);
    expect(stub.state().servers).toEqual([]);
    expect((await database.pool.query('SELECT FROM log.events')).rowCount).toBe(0);
  });

  test('--no-wait, then --resume: one server; each step tells its events; no token in the output', async () => {
    const first = await provision(...ORDER, '--name', 'app-one', '--no-wait');
    const again = await provision('--resume', 'app-one', '--no-wait', '--json');
    expect([first.code, first.stderr, again.code]).toEqual([0, '', 0]);
    expect(first.stdout).toMatch(/\(node_provisioning_requested at 1\)/);
    expect(plainLines(first).at(-1)).toMatch(/^app-one \([0-9a-f-]{36}\) is awaiting enrollment$/);
    expect(JSON.parse(again.stdout)).toMatchObject({
      name: 'app-one',
      provision_state: 'awaiting_enrollment',
      changed: false,
    });
    expect(stub.state().servers).toHaveLength(1);
    expect(first.stdout + again.stdout).not.toContain(TOKEN);
  });

  test('--retry of a node that has not failed: exit 1; a name that is taken: exit 1', async () => {
    const [retry, taken] = await Promise.all([
      provision('--retry', 'app-one', '--json'),
      provision(...ORDER, '--name', 'app-one', '--json'),
    ]);
    expect([retry.code, JSON.parse(retry.stdout).error.code]).toEqual([1, 'node_not_failed']);
    expect([taken.code, JSON.parse(taken.stdout).error.code]).toEqual([1, 'server_name_taken']);
  });

  test('half an order, a name that no host can have, a missing variable: exit 2', async () => {
    const runs = await Promise.all([
      provision('--pool', 'build'),
      provision(...ORDER, '--name', 'App One'),
      runCli(['fleet', 'provision', ...ORDER], { env: { ...env, HETZNER_API_TOKEN: '' } }),
    ]);
    expect(runs.map(({ code }) => code)).toEqual([2, 2, 2]);
    expect(runs[0]?.stderr).toContain('a new node needs --region, --type');
    expect(runs[2]?.stderr).toContain('HETZNER_API_TOKEN is not set');
  });

  test('the provider refuses the token: exit 3, without the token', async () => {
    const run = await runCli(['fleet', 'provision', ...ORDER], { env: { ...env, HETZNER_API_TOKEN: 'canary-wrong' } });
    expect([run.code, run.stderr.includes('canary')]).toEqual([3, false]);
  });
});
