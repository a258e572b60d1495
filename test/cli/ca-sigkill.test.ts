import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import type { PkiPaths } from '../../src/pki/files.ts';
import { loadPki } from '../../src/pki/pki-set.ts';
import { gatewayEnvironment } from '../gateway/support/fleet.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { runCli, startCli } from './support/run-cli.ts';

const cleanup = new AsyncDisposableStack();
let database: TestDatabase;
let pki: PkiPaths;
let env: Record<string, string>;

beforeAll(async () => {
  const { path } = cleanup.use(await temporaryDirectory());
  database = cleanup.adopt(await createTestDatabase(), (created) => created.drop());
  const names = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] };
  pki = await ensureDevelopmentPki(path, { ...names, now: Date.now() });
  env = gatewayEnvironment(database.url, pki);
  expect(await cli('init')).toMatchObject({ code: 0 });
});
afterAll(() => cleanup.disposeAsync());

const cli = (...args: string[]) => runCli(['fleet', 'ca', ...args], { env });

const appended = (type: string, times: number) => async () =>
  (await database.pool.query('SELECT FROM log.events WHERE type = $1', [type])).rowCount === times;

/** Kills a phase with -9 as soon as something is so, then runs it again to its end. */
async function killedWhen(phase: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const child = startCli(['fleet', 'ca', 'rotate', phase], { env });
  const closed = once(child, 'close');
  await waitFor(async () => (await isSo()) || child.exitCode !== null, {
    what: `the moment to kill ${phase}`,
    deadlineMs: 30_000,
    intervalMs: 1,
  });
  child.kill('SIGKILL');
  await closed;
  expect(await cli('rotate', phase)).toMatchObject({ code: 0, stderr: '' });
}

/** What the log says, and that a gateway could start with the files: its issuer is the one that the log names. */
async function standing(): Promise<unknown> {
  const { rows } = await database.pool.query<{ issuing: string; trusted: number; rotating: boolean }>(
    `SELECT issuing_ca_sha256 AS issuing, jsonb_array_length(trusted) AS trusted, rotation_id IS NOT NULL AS rotating FROM fleet.fleet_ca`,
  );
  const loaded = await loadPki(pki, Date.now());
  if (!loaded.ok) return loaded.problem;
  const [row] = rows;
  return {
    trusted: row?.trusted,
    rotating: row?.rotating,
    filesTrust: loaded.pki.trustedCaSha256s.length,
    issuerIsTheLogs: loaded.pki.signer.caSha256 === row?.issuing,
    archived: existsSync(`${pki.caKey}.previous`),
    staged: existsSync(`${pki.caKey}.next`),
  };
}

const OVERLAP = { trusted: 2, rotating: true, filesTrust: 2, issuerIsTheLogs: true, archived: true, staged: false };
const STEADY = { trusted: 1, rotating: false, filesTrust: 1, issuerIsTheLogs: true, archived: false, staged: false };

/** One story: each test goes on where the one before ended. */
describe('a real process, killed with -9 and run again', () => {
  test('begin, when the new CA is staged: begun', async () => {
    await killedWhen('--begin', () => existsSync(`${pki.caCert}.next`));
    expect(await standing()).toEqual(OVERLAP);
  });

  test('abort, when it is decided: the first CA alone', async () => {
    await killedWhen('--abort', appended('ca_rotation_aborted', 1));
    expect(await standing()).toEqual(STEADY);
  });

  test('begin, when it is decided: begun', async () => {
    await killedWhen('--begin', appended('ca_rotation_begun', 2));
    expect(await standing()).toEqual(OVERLAP);
  });

  test('complete, when it is decided: the new CA alone', async () => {
    await killedWhen('--complete', appended('ca_rotation_completed', 1));
    expect(await standing()).toEqual(STEADY);
  });

  test('begin, when the old CA is being archived: begun', async () => {
    await killedWhen('--begin', () => existsSync(`${pki.caCert}.previous`));
    expect(await standing()).toEqual(OVERLAP);
  });

  test('afterwards: status and a forecast read the same, and the log holds', async () => {
    expect(await cli('status', '--json')).toMatchObject({ code: 0, stderr: '' });
    expect(await cli('rotate', '--complete', '--dry-run')).toMatchObject({ code: 0, stderr: '' });
    expect(await cli('reissue-gateway')).toMatchObject({ code: 0, stderr: '' });
    expect(await cli('sync')).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to do') });
    expect(await standing()).toEqual(OVERLAP);
    expect(await runCli(['log', 'verify'], { env })).toMatchObject({ code: 0 });
  });
});
