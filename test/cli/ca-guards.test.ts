import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import type { PkiPaths } from '../../src/pki/files.ts';
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
  pki = await ensureDevelopmentPki(path, { dnsNames: ['localhost'], ipAddresses: [], now: Date.now() });
  env = gatewayEnvironment(database.url, pki);
  expect(await runCli(['fleet', 'ca', 'init'], { env })).toMatchObject({ code: 0 });
}, 60_000);
afterAll(() => cleanup.disposeAsync());

/** A gateway that is alive for a minute and trusts no CA. */
const blindGateway = () =>
  database.pool.query(
    `INSERT INTO telemetry.programs VALUES ('gateway@blind:1', 'gateway', '{}', now(), now() + interval '1 minute')`,
  );

const lockSessions = async () =>
  (
    await database.pool.query(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE '%ca tester%'`,
    )
  ).rows;

/** One story: the second test needs the rotation that the first one leaves. */
describe('fleet ca, guarded', () => {
  test('rotate that loses its lock while it waits: exit 3, the CA in force is left alone; run again, it goes on', async () => {
    const issuer = await readFile(pki.caCert, 'utf8');
    await blindGateway();
    const child = startCli(['fleet', 'ca', 'rotate', '--begin', '--wait', '30'], { env });
    const closed = once(child, 'close');
    const [stderr, waiting] = [text(child.stderr), Promise.withResolvers<void>()];
    child.stdout.on('data', (chunk: Buffer) => chunk.includes('waiting until') && waiting.resolve());
    await waiting.promise;
    expect(await lockSessions()).toHaveLength(1);
    for (const { pid } of await lockSessions()) await database.pool.query('SELECT pg_terminate_backend($1)', [pid]);
    await waitFor(async () => (await lockSessions()).length === 0, { what: 'the session is gone', deadlineMs: 5_000 });
    await database.pool.query('DELETE FROM telemetry.programs');
    expect(await closed).toEqual([3, null]);
    expect(await stderr).toContain('held the lock of the CA is lost');
    expect(await readFile(pki.caCert, 'utf8')).toBe(issuer);
    expect(await runCli(['fleet', 'ca', 'rotate', '--begin'], { env })).toMatchObject({ code: 0, stderr: '' });
    expect(await readFile(pki.caCert, 'utf8')).not.toBe(issuer);
  }, 60_000);

  test('init with other names while the new CA issues: refused, the gateway keeps its certificate', async () => {
    const serving = await readFile(pki.gatewayCert, 'utf8');
    const init = await runCli(['fleet', 'ca', 'init', '--dns', 'other.example'], { env });
    expect(init).toMatchObject({ code: 1, stderr: expect.stringContaining('is under way') });
    expect(await readFile(pki.gatewayCert, 'utf8')).toBe(serving);
  });
});
