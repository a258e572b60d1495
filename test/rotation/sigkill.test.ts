import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import type { PkiPaths } from '../../src/pki/files.ts';
import { runCli, startCli } from '../cli/support/run-cli.ts';
import { opensslVerify } from '../e2e/support/openssl.ts';
import { gatewayEnvironment } from '../gateway/support/fleet.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const DIE_BEFORE = join(import.meta.dirname, 'fixtures/die-before.ts');
const STEADY = ['ca.key', 'ca.pem', 'gateway.key', 'gateway.pem', 'trust-bundle.pem'];
const ROTATING = [...STEADY, 'ca.key.previous', 'ca.pem.previous'].toSorted();

const cleanup = new AsyncDisposableStack();
let database: TestDatabase;
let folder: string;
let pki: PkiPaths;
let env: Readonly<Record<string, string>>;

beforeAll(async () => {
  ({ path: folder } = cleanup.use(await temporaryDirectory()));
  database = cleanup.adopt(await createTestDatabase(), (created) => created.drop());
  pki = await ensureDevelopmentPki(`${folder}/pki`, { dnsNames: ['localhost'], ipAddresses: [], now: Date.now() });
  env = gatewayEnvironment(database.url, pki);
  expect(await runCli(['fleet', 'ca', 'init'], { env })).toMatchObject({ code: 0, stderr: '' });
}, 60_000);

afterAll(() => cleanup.disposeAsync());

async function rotate(phase: string) {
  return runCli(['fleet', 'ca', 'rotate', phase, '--wait', '0'], { env });
}

/** Runs a phase whose process is killed right before this step on the disk. */
async function killedBefore(step: string, phase: string): Promise<void> {
  const options = { ...env, NODE_OPTIONS: `--import=${DIE_BEFORE}`, DIE_BEFORE: step };
  const child = startCli(['fleet', 'ca', 'rotate', phase, '--wait', '0'], { env: options });
  child.stdin.end();
  child.stdout.resume();
  child.stderr.resume();
  expect(await once(child, 'close')).toEqual([null, 'SIGKILL']);
}

const files = async () => (await readdir(`${folder}/pki`)).toSorted();

async function eventTypes(): Promise<string[]> {
  const { rows } = await database.pool.query<{ type: string }>('SELECT type FROM log.events ORDER BY position');
  return rows.map(({ type }) => type);
}

/** One story on one host: each test goes on where the one before it ended. */
describe('fleet ca rotate, killed with -9', () => {
  test.each([
    ['--begin', 'rename ca.pem.next', ['ca_initialized']],
    ['--begin', 'rename trust-bundle.pem', ['ca_initialized', 'ca_rotation_begun']],
    ['--begin', 'rename ca.pem', ['ca_initialized', 'ca_rotation_begun']],
  ])('%s before "%s": the log is as far as the files', async (phase, step, events) => {
    await killedBefore(step, phase);
    expect(await eventTypes()).toEqual(events);
  });

  test('--abort before "remove ca.pem.previous": run again, the first CA alone and no key left over', async () => {
    await killedBefore('remove ca.pem.previous', '--abort');
    expect(await rotate('--abort')).toMatchObject({ code: 0, stderr: '' });
    expect(await files()).toEqual(STEADY);
    expect(await opensslVerify(pki.trustBundle, pki.gatewayCert)).toBe(`${pki.gatewayCert}: OK`);
  });

  test('--begin anew: two CAs are on the host', async () => {
    expect(await rotate('--begin')).toMatchObject({ code: 0, stderr: '' });
    expect(await files()).toEqual(ROTATING);
  });

  test('init while the new CA issues: refused, the gateway keeps its certificate', async () => {
    const init = await runCli(['fleet', 'ca', 'init', '--dns', 'other.example'], { env });
    expect(init).toMatchObject({ code: 1, stderr: expect.stringContaining('is under way') });
    expect(await opensslVerify(`${pki.caCert}.previous`, pki.gatewayCert)).toBe(`${pki.gatewayCert}: OK`);
  });

  test('--complete before "rename gateway.pem": run again, the new CA alone and no key left over', async () => {
    await killedBefore('rename gateway.pem', '--complete');
    expect(await rotate('--complete')).toMatchObject({ code: 0, stderr: '' });
    expect(await files()).toEqual(STEADY);
    expect(await opensslVerify(pki.caCert, pki.gatewayCert)).toBe(`${pki.gatewayCert}: OK`);
    expect(await opensslVerify(pki.caCert, pki.trustBundle)).toBe(`${pki.trustBundle}: OK`);
  });
});
