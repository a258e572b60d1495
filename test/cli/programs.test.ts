import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { runCli, startCli } from './support/run-cli.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

const beacons = async (kind: string): Promise<number> =>
  (await database.pool.query('SELECT FROM telemetry.programs WHERE kind = $1', [kind])).rowCount ?? 0;

/** Starts a program, waits for its beacon, and ends it. Answers its exit code, its log's messages and the beacons that it leaves. */
async function lifeOf(kind: 'gateway' | 'scheduler', env: Record<string, string>) {
  const child = startCli([kind], { env: { DATABASE_URL: database.url, ...env } });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const closed = once(child, 'close');
  await waitFor(async () => (await beacons(kind)) === 1 || child.exitCode !== null, {
    what: `the ${kind} has a beacon`,
    deadlineMs: 30_000,
  });
  child.kill('SIGTERM');
  const [code] = await closed;
  const messages: string[] = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).msg);
  return { code, stderr, messages, beacons: await beacons(kind) };
}

describe('long-running programs', () => {
  test('scheduler: leads, and SIGTERM ends it in order', async () => {
    expect(await lifeOf('scheduler', { PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: '0.1' })).toEqual({
      code: 0,
      stderr: '',
      messages: ['leading', 'the scheduler stops'],
      beacons: 0,
    });
  });

  test('gateway: listens, and SIGTERM ends it in order', async () => {
    await using folder = await temporaryDirectory();
    const pki = await ensureDevelopmentPki(`${folder.path}/pki`, {
      dnsNames: ['localhost'],
      ipAddresses: ['127.0.0.1'],
      now: Date.now(),
    });
    const life = await lifeOf('gateway', {
      PUSHLEFT_GATEWAY_BIND: '127.0.0.1:0',
      PUSHLEFT_AGENT_ENROLL_BIND: '127.0.0.1:0',
      PUSHLEFT_GATEWAY_ADMIN_BIND: '127.0.0.1:0',
      PUSHLEFT_GATEWAY_CERT: pki.gatewayCert,
      PUSHLEFT_GATEWAY_KEY: pki.gatewayKey,
      PUSHLEFT_AGENT_CLIENT_CA: pki.trustBundle,
      PUSHLEFT_AGENT_CA_CERT: pki.caCert,
      PUSHLEFT_AGENT_CA_KEY: pki.caKey,
    });
    expect(life).toEqual({ code: 0, stderr: '', messages: ['the gateway listens', 'the gateway stops'], beacons: 0 });
  });

  test('gateway without its files: exit 2, one line that names the variable', async () => {
    expect(await runCli(['gateway'], { env: { DATABASE_URL: database.url } })).toEqual({
      code: 2,
      stdout: '',
      stderr: 'pushleft-controller: PUSHLEFT_GATEWAY_CERT is not set\n',
    });
  });
});
