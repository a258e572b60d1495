import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
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

/** One story: each test goes on where the one before ended; the last has a host of its own. */
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

  test('forecasts in a rotation: --begin and --abort say what they would do, nothing is recorded or written', async () => {
    const before = await database.pool.query('SELECT count(*) FROM log.events');
    const forecast = (phase: string) => runCli(['fleet', 'ca', 'rotate', phase, '--dry-run'], { env });
    expect(await forecast('--begin')).toMatchObject({ code: 1, stderr: expect.stringContaining('is under way') });
    expect(await forecast('--complete')).toMatchObject({
      code: 0,
      stdout: 'would append ca_rotation_completed: --complete would go through\n',
    });
    expect(await forecast('--abort')).toMatchObject({ code: 0, stderr: '' });
    expect((await database.pool.query('SELECT count(*) FROM log.events')).rows).toEqual(before.rows);
    expect(existsSync(`${pki.caKey}.next`)).toBe(false);
  });

  test('reissue-gateway in a rotation: the same names by the CA that every agent trusts, on record; sync has nothing to do', async () => {
    const served = new X509Certificate(await readFile(pki.gatewayCert));
    const reissued = await runCli(['fleet', 'ca', 'reissue-gateway', '--json'], { env });
    expect(JSON.parse(reissued.stdout).events).toEqual([
      { position: expect.any(Number), type: 'gateway_certificate_issued' },
    ]);
    const serving = new X509Certificate(await readFile(pki.gatewayCert));
    const old = new X509Certificate(await readFile(`${pki.caCert}.previous`));
    expect(serving.fingerprint256).not.toBe(served.fingerprint256);
    expect([serving.subjectAltName, serving.verify(old.publicKey)]).toEqual([served.subjectAltName, true]);
    expect(await runCli(['fleet', 'ca', 'sync'], { env })).toMatchObject({
      code: 0,
      stdout: 'nothing to do: this host is where the log says\n',
    });
    const { host } = JSON.parse((await runCli(['fleet', 'ca', 'status', '--json'], { env })).stdout);
    const pems = [await readFile(pki.caCert), await readFile(`${pki.caCert}.previous`)];
    const [next, previous] = pems.map((pem) =>
      new X509Certificate(pem).fingerprint256.replaceAll(':', '').toLowerCase(),
    );
    expect(host).toMatchObject({
      ca_cert: pki.caCert,
      in_step: true,
      pki: { issuer_ca_sha256: next, previous_issuer_ca_sha256: previous, serving: { issuer_ca_sha256: previous } },
      error: null,
    });
  });

  test('complete while a gateway with files of its own serves the old CA: exit 1 names it and the remedy; once it is gone, 0', async () => {
    const { rows } = await database.pool.query('SELECT trusted, current_ca_sha256 AS old FROM fleet.fleet_ca');
    const [{ trusted, old }] = rows;
    const [now, later] = [new Date().toISOString(), new Date(Date.now() + 86_400_000).toISOString()];
    const pki = {
      trusted_ca_sha256s: trusted.map(({ sha256 }: { sha256: string }) => sha256),
      issuer_ca_sha256: old,
      previous_issuer_ca_sha256: null,
      serving: { fingerprint_sha256: old, issuer_ca_sha256: old, not_before: now, not_after: later },
      loaded_at: now,
      error: null,
    };
    await database.pool.query(
      `INSERT INTO telemetry.programs VALUES ('gateway@apart:1', 'gateway', $1, now(), now() + interval '1 minute')`,
      [JSON.stringify({ pki })],
    );
    const complete = () => runCli(['fleet', 'ca', 'rotate', '--complete', '--wait', '0'], { env });
    const { code, stderr } = await complete();
    expect(code).toBe(1);
    expect(stderr).toMatch(/is completed, and these gateways .*: gateway@apart:1\n.*fleet ca sync/);
    await database.pool.query('DELETE FROM telemetry.programs');
    expect(await complete()).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to do') });
  });

  test('a host that lost its CA key: init with names is refused and makes none, sync says what to carry and takes it', async () => {
    await using elsewhere = await temporaryDirectory();
    const ca = (...args: string[]) => runCli(['fleet', 'ca', ...args], { env });
    await rename(pki.caKey, `${elsewhere.path}/carried.key`);
    const missing = { code: 1, stderr: expect.stringContaining('key') };
    expect(await ca('init', '--dns', 'localhost')).toMatchObject(missing);
    expect(await ca('sync')).toMatchObject({ code: 1, stderr: expect.stringContaining('--from DIR') });
    expect(existsSync(pki.caKey)).toBe(false);
    expect((await ca('status')).stdout).toContain(`warning: the files of this host cannot be used: ${pki.caKey}`);
    expect(await ca('sync', '--from', elsewhere.path)).toMatchObject({ code: 0, stderr: '' });
    const { stdout } = await ca('status');
    expect([stdout.includes('warning'), stdout.includes(`files of this host (${pki.caCert}): issue by `)]).toEqual([
      false,
      true,
    ]);
    const { mode } = await stat(pki.caKey);
    expect([await readFile(pki.caKey, 'utf8'), mode & 0o777]).toEqual([
      await readFile(`${elsewhere.path}/carried.key`, 'utf8'),
      0o600,
    ]);
  });

  test('init without files: makes them for the names that are given, once', async () => {
    await using folder = await temporaryDirectory();
    const other = await createTestDatabase();
    const names = (path: string) => path.replace(dirname(pki.caCert), folder.path);
    const [caCert, caKey, trustBundle] = [names(pki.caCert), names(pki.caKey), names(pki.trustBundle)];
    const paths = {
      caCert,
      caKey,
      trustBundle,
      gatewayCert: names(pki.gatewayCert),
      gatewayKey: names(pki.gatewayKey),
    };
    const elsewhere = gatewayEnvironment(other.url, paths);
    const init = (...args: string[]) => runCli(['fleet', 'ca', 'init', ...args], { env: elsewhere });
    expect(await init()).toMatchObject({ code: 1, stderr: expect.stringContaining('--dns or --ip') });
    expect(await init('--dns', 'gateway.example', '--ip', '203.0.113.5')).toMatchObject({ code: 0, stderr: '' });
    expect(new X509Certificate(await readFile(paths.gatewayCert)).subjectAltName).toBe(
      'DNS:gateway.example, IP Address:203.0.113.5',
    );
    const again = await init('--dns', 'gateway.example', '--ip', '203.0.113.5');
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining('nothing to do') });
    const { rows } = await other.pool.query('SELECT type FROM log.events ORDER BY position');
    expect(rows).toEqual([{ type: 'ca_initialized' }, { type: 'gateway_certificate_issued' }]);
    await other.drop();
  });
});
