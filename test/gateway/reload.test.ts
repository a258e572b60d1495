import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import type { PkiStatus } from '../../src/gateway/pki-status.ts';
import { sha256Hex } from '../../src/pki/certificate.ts';
import type { PkiPaths } from '../../src/pki/files.ts';
import { loadPki } from '../../src/pki/pki-set.ts';
import { fileSigner } from '../../src/pki/signer.ts';
import { type ClientRun, sClient } from '../e2e/support/openssl.ts';
import { writeSet } from '../pki/pki-folder.ts';
import { issueServer, newCa, newKey, pemOf, type TestCa, temporaryFolder } from '../pki/support.ts';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, exchange } from './support/client.ts';
import { NO_LIMITS, startFleet, type TestAgent, type TestFleet } from './support/fleet.ts';
import { type ManualTicker, manualTicker } from './support/manual-ticker.ts';

let ticks: ManualTicker;
let fleet: TestFleet;
let paths: PkiPaths;
let ca: TestCa;
let identity: TestAgent;
beforeAll(async () => {
  ticks = manualTicker();
  fleet = await startFleet({}, NO_LIMITS, (url) => url, ticks.ticker);
  paths = fleet.pkiPaths;
  const [certPem, keyPem] = [readFileSync(paths.caCert, 'utf8'), readFileSync(paths.caKey, 'utf8')];
  ca = { certPem, keyPem, signer: fileSigner(certPem, keyPem) };
  identity = await fleet.agent();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** What a gateway says of its PKI files on /status, and its metrics. */
async function told({ adminUrl }: Gateway) {
  const { pki: status } = (await (await fetch(`${adminUrl}/status`)).json()) as { pki: PkiStatus };
  return { status, metrics: await (await fetch(`${adminUrl}/metrics`)).text() };
}

/** Waits until a gateway's beacon says the same. */
async function beaconTells(status: PkiStatus, { adminUrl }: Gateway): Promise<void> {
  await waitFor(
    async () => {
      const { rows } = await fleet.database.pool.query<{ pki: PkiStatus }>(
        `SELECT details -> 'pki' AS pki FROM telemetry.programs WHERE details -> 'addresses' ->> 'admin' = $1`,
        [adminUrl],
      );
      return rows.some(({ pki }) => isDeepStrictEqual(pki, status));
    },
    { what: 'the beacon tells the same as the status' },
  );
}

/** The certificate that a new connection is shown. */
async function served(url: string): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port: Number(new URL(url).port), rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const certificate = socket.getPeerX509Certificate();
  socket.destroy();
  return certificate === undefined ? '' : sha256Hex(certificate.raw);
}

/** A request on a connection of its own, by an agent that trusts what the files on the disk say now is trusted. */
async function leaseAnew(bundlePem: string): Promise<number> {
  using agent = new AgentClient(fleet.gateway.agentUrl, { ...identity, ca: bundlePem });
  return (await agent.lease()).status;
}

describe('files that cannot be used: the last good set serves, the errors are visible, the next good set is taken', () => {
  const truncate = (path: string) => writeFileSync(path, readFileSync(path, 'utf8').slice(0, -60));

  test.for<[title: string, code: string, spoil: (paths: PkiPaths) => void | Promise<void>]>([
    [
      'key written, its certificate not yet',
      'pki_gateway_key_mismatch',
      ({ gatewayKey }) => writeFileSync(gatewayKey, pemOf(newKey())),
    ],
    ['a truncated certificate', 'pki_file_malformed', ({ gatewayCert }) => truncate(gatewayCert)],
    ['a truncated key', 'pki_file_malformed', ({ gatewayKey }) => truncate(gatewayKey)],
    ['a truncated bundle', 'pki_file_malformed', ({ trustBundle }) => truncate(trustBundle)],
    [
      'the certificate of another key',
      'pki_gateway_key_mismatch',
      async ({ gatewayCert }) => writeFileSync(gatewayCert, (await issueServer(ca, newKey())).pem),
    ],
    [
      'the issuing CA absent from the bundle',
      'pki_ca_not_in_bundle',
      async ({ trustBundle }) => writeFileSync(trustBundle, (await newCa()).certPem),
    ],
    ['a key that the group may read', 'pki_key_permissions', ({ caKey }) => chmodSync(caKey, 0o640)],
  ])('%s', async ([, code, spoil]) => {
    const before = await told(fleet.gateway);
    const trusted = readFileSync(paths.trustBundle, 'utf8');
    await spoil(paths);
    await ticks.tick();

    const spoilt = await told(fleet.gateway);
    expect(spoilt.status).toEqual({
      ...before.status,
      error: { code, message: expect.stringContaining(': '), since: expect.stringMatching(/Z$/) },
    });
    expect(spoilt.metrics).toContain('pushleft_gateway_pki_load_failed 1\n');
    const { fingerprint_sha256: serving } = before.status.serving;
    expect([await served(fleet.gateway.agentUrl), await served(fleet.gateway.enrollUrl)]).toEqual([serving, serving]);
    expect(await leaseAnew(trusted)).toBe(200);
    await beaconTells(spoilt.status, fleet.gateway);

    chmodSync(paths.caKey, 0o600);
    await writeSet(paths, { ca });
    await ticks.tick();
    const healed = await told(fleet.gateway);
    expect(healed.status.error).toBeNull();
    expect(healed.metrics).toContain('pushleft_gateway_pki_load_failed 0\n');
    const next = healed.status.serving.fingerprint_sha256;
    expect(next).not.toBe(serving);
    expect([await served(fleet.gateway.agentUrl), await served(fleet.gateway.enrollUrl)]).toEqual([next, next]);
    expect(await leaseAnew(readFileSync(paths.trustBundle, 'utf8'))).toBe(200);
  });
});

test('metrics: when it was loaded, what is trusted, who issues, how long the certificate lives', async () => {
  const { status, metrics } = await told(fleet.gateway);
  expect(metrics).toContain(`pushleft_gateway_pki_loaded_timestamp_seconds ${Date.parse(status.loaded_at) / 1_000}\n`);
  expect(metrics).toContain('pushleft_gateway_trusted_cas 1\n');
  expect(metrics).toContain(`pushleft_gateway_issuer_info{ca_sha256="${ca.signer.caSha256}"} 1\n`);
  expect(metrics).toMatch(/^pushleft_gateway_certificate_seconds \d+/m);
});

test('a good set, by the clock: in force within 2 s', async () => {
  const gateway = await fleet.startGateway();
  await writeSet(paths, { ca });
  const loading = await loadPki(paths, Date.now());
  if (!loading.ok) throw new Error(loading.problem.message);
  const expected = loading.pki.serving.fingerprintSha256;
  // A third second for a machine that is busy with other tests.
  await waitFor(async () => (await served(gateway.agentUrl)) === expected, { what: 'it serves it', deadlineMs: 3_000 });
  expect(await served(gateway.enrollUrl)).toBe(expected);
  await gateway.close();
});

describe('an old CA leaves the bundle', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let old: { status: number; agent: AgentClient };
  let newcomer: TestAgent;
  let kept: ClientRun;
  const files = () => {
    const file = (name: string) => join(folder.path, name);
    return { cert: file('agent.pem'), key: file('agent.key'), session: file('session.pem') };
  };
  beforeAll(async () => {
    folder = temporaryFolder();
    writeFileSync(files().cert, identity.cert ?? '');
    writeFileSync(files().key, identity.key ?? '', { mode: 0o600 });
    const next = await writeSet(paths, { trusted: [ca] });
    await ticks.tick();
    const bundle = readFileSync(paths.trustBundle, 'utf8');
    const agent = new AgentClient(fleet.gateway.agentUrl, { ...identity, ca: bundle });
    kept = await openssl(['-sess_out', files().session]);
    old = { agent, status: (await agent.lease()).status };
    await writeSet(paths, { ca: next });
    await ticks.tick();
    const node = await fleet.provision();
    const key = newKey();
    const answered = await exchange(fleet.gateway.enrollUrl, '/v1/enroll', {
      ca: next.certPem,
      body: { node_id: node.nodeId, enrollment_secret: node.secret, csr_pem: createCsr(node.nodeId, key) },
    });
    const { certificate_pem: cert } = answered.body as { certificate_pem: string };
    newcomer = { ...node, ca: next.certPem, cert, key: pemOf(key) };
  });
  afterAll(() => {
    old.agent[Symbol.dispose]();
    folder[Symbol.dispose]();
  });

  /** Connects with openssl and the old CA's certificate, and asks for /healthz; ends when the gateway closes, or has answered. */
  function openssl(more: readonly string[]): Promise<ClientRun> {
    const { cert, key } = files();
    const port = Number(new URL(fleet.gateway.agentUrl).port);
    return sClient(port, { cert, key, ca: paths.trustBundle }, more, (received) => received.includes('}'));
  }

  test('before: its client was answered, and kept a session', () => {
    expect([kept.received, old.status, readFileSync(files().session, 'utf8')]).toEqual([
      expect.stringMatching(/^HTTP\/1\.1 200 /),
      200,
      expect.stringContaining('BEGIN SSL SESSION PARAMETERS'),
    ]);
  });

  test.for<[string, () => string[]]>([
    ['without a saved session', () => []],
    ['with its saved session', () => ['-sess_in', files().session]],
  ])('its client, %s: not one byte of HTTP, closed within a second', async ([, more]) => {
    const { received, closedAfterMs } = await openssl(more());
    expect(received).toBe('');
    expect(closedAfterMs).toBeLessThan(1_000);
  });

  test('its client on an open connection: answered as before', async () => {
    const answered = await old.agent.lease();
    expect([answered.status, answered.reused]).toEqual([200, true]);
  });

  test('an agent of the new CA, enrolled since: answered', async () => {
    using agent = new AgentClient(fleet.gateway.agentUrl, newcomer);
    expect((await agent.lease()).status).toBe(200);
  });
});
