import { hash, randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';
import { abortRotationCommand, beginRotationCommand, initializeCaCommand } from '../../src/commands/ca.ts';
import { armReenrollmentCommand } from '../../src/commands/node.ts';
import { CA_STREAM } from '../../src/domain/stream.ts';
import type { Gateway } from '../../src/gateway/gateway.ts';
import { enroll } from '../../src/gateway/issuance.ts';
import { previousPath } from '../../src/pki/files.ts';
import { fileSigner } from '../../src/pki/signer.ts';
import { newCa, type TestCa } from '../pki/support.ts';
import { loseCommand } from '../support/lose.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { AgentClient, exchange } from './support/client.ts';
import {
  type AwaitedNode,
  NO_LIMITS,
  newKey,
  pkiOf,
  startFleet,
  type TestAgent,
  type TestFleet,
} from './support/fleet.ts';
import { type ManualTicker, manualTicker } from './support/manual-ticker.ts';
import { appendCommand, eventsOf, renew, renewed, spkiOf, told } from './support/renewal.ts';
import { running } from './support/running.ts';

let ticks: ManualTicker;
let fleet: TestFleet;
/** The fleet's first CA, one whose rotation is aborted, and the one that takes over. */
let first: TestCa;
let aborted: TestCa;
let second: TestCa;
/** Enrolled under the first CA. */
let agent: TestAgent;
/** Enrolled under the first CA too, and given up; what it left running. */
let gone: TestAgent;
let left: string;
let folder: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  folder = await temporaryDirectory();
  // The gateway looks at its files when a test says so, or when it needs to.
  ticks = manualTicker();
  fleet = await startFleet({}, NO_LIMITS, (url) => url, ticks.ticker);
  const { caCert, caKey } = fleet.pkiPaths;
  const [certPem, keyPem] = await Promise.all([readFile(caCert, 'utf8'), readFile(caKey, 'utf8')]);
  first = { certPem, keyPem, signer: fileSigner(certPem, keyPem) };
  [aborted, second] = await Promise.all([newCa('Aborted CA'), newCa('Second CA')]);
  await fleet.operate(initializeCaCommand, named(first));
  agent = await fleet.agent();
  gone = await fleet.agent();
  [left = ''] = await running(fleet, gone, 1);
  await fleet.operate(loseCommand, { node_id: gone.nodeId });
});
afterAll(async () => {
  await fleet[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

const named = ({ certPem, signer }: TestCa) => ({
  ca_sha256: signer.caSha256,
  ca_pem: certPem,
  not_after: signer.caNotAfterMs,
});

async function begin(next: TestCa): Promise<string> {
  const rotation_id = randomUUID();
  await fleet.operate(beginRotationCommand, {
    rotation_id,
    previous_ca_sha256: first.signer.caSha256,
    ...named(next),
  });
  return rotation_id;
}

/** What an operator's host has after the first steps of a rotation: both CAs trusted, the new one's files, the old one's archive. */
async function writeRotation(next: TestCa): Promise<void> {
  const { caCert, caKey, trustBundle } = fleet.pkiPaths;
  await writeFile(trustBundle, next.certPem + first.certPem);
  await writeFile(previousPath(caCert), first.certPem);
  await writeFile(previousPath(caKey), first.keyPem, { mode: 0o600 });
  await writeFile(caKey, next.keyPem);
  await writeFile(caCert, next.certPem);
}

async function writeFirst(): Promise<void> {
  const { caCert, caKey, trustBundle } = fleet.pkiPaths;
  await writeFile(caKey, first.keyPem);
  await writeFile(caCert, first.certPem);
  await writeFile(trustBundle, first.certPem);
  await rm(previousPath(caCert));
  await rm(previousPath(caKey));
}

async function leaseAs(identity: TestAgent) {
  using client = new AgentClient(fleet.gateway.agentUrl, identity);
  return await client.lease();
}

/** Which of the CAs signed a certificate, by the signature. */
function issuerOf({ cert = '' }: { cert?: string }): string | undefined {
  const certificate = new X509Certificate(cert);
  const cas = Object.entries({ first, aborted, second });
  return cas.find(([, { certPem }]) => certificate.verify(new X509Certificate(certPem).publicKey))?.[0];
}

/** Whose name the log has for the certificates of a node, oldest first. */
async function recordedIssuers(nodeId: string): Promise<unknown[]> {
  const { rows } = await fleet.database.pool.query<{ issuer: string }>(
    'SELECT issuer_ca_sha256 AS issuer FROM fleet.fleet_node_certificates WHERE node_id = $1 ORDER BY authorized_position',
    [nodeId],
  );
  const names = new Map(Object.entries({ first, aborted, second }).map(([name, ca]) => [ca.signer.caSha256, name]));
  return rows.map(({ issuer }) => names.get(issuer));
}

function enrollAt({ enrollUrl }: Gateway, { nodeId, secret }: AwaitedNode, key = newKey()) {
  const body = { node_id: nodeId, enrollment_secret: secret, csr_pem: createCsr(nodeId, key) };
  return exchange(enrollUrl, '/v1/enroll', { ca: fleet.pki.bundlePem, body });
}

/** A gateway on a host whose files nobody has touched since the first CA. */
async function gatewayOfAnotherHost(): Promise<Gateway> {
  const own = (path: string) => join(folder.path, path.slice(path.lastIndexOf('/') + 1));
  const { caCert, caKey, trustBundle, gatewayCert, gatewayKey } = fleet.pkiPaths;
  const env = {
    PUSHLEFT_AGENT_CA_CERT: own(caCert),
    PUSHLEFT_AGENT_CA_KEY: own(caKey),
    PUSHLEFT_AGENT_CLIENT_CA: own(trustBundle),
    PUSHLEFT_GATEWAY_CERT: own(gatewayCert),
    PUSHLEFT_GATEWAY_KEY: own(gatewayKey),
  };
  for (const path of Object.values(fleet.pkiPaths)) await cp(path, own(path));
  return fleet.startGateway(env);
}

/** Steps of one story on one fleet; each test is a step. */
describe('the log says which CA issues, whatever the files are', () => {
  test('begun, and the files of the new CA are in force already: the old one issues', async () => {
    await begin(aborted);
    await writeRotation(aborted);
    await ticks.tick();
    const enrolled = await fleet.agent();
    expect([issuerOf(enrolled), await recordedIssuers(enrolled.nodeId)]).toEqual(['first', ['first']]);
  });

  test('aborted, and the gateway has not read its files again: the old one issues, the aborted one never', async () => {
    await fleet.operate(abortRotationCommand, {});
    await writeFirst();
    const enrolled = await fleet.agent();
    expect([issuerOf(enrolled), await recordedIssuers(enrolled.nodeId)]).toEqual(['first', ['first']]);
    await ticks.tick();
  });

  test('a gateway that has read only the files of an aborted CA: 503, logged, nothing recorded', async () => {
    const node = await fleet.provision();
    const claim = { nodeId: node.nodeId, secretHex: node.secret, spkiDer: spkiOf(newKey()) };
    const services = { transactor: fleet.operator, pki: pkiOf(aborted.signer), lifetimeSeconds: 86_400 };
    expect(await enroll(claim, services, { actor: { kind: 'gateway', id: 'test' } })).toEqual({
      ok: false,
      unavailable: `this gateway does not have the key of the CA that may issue, ${first.signer.caSha256}`,
    });
    expect(await recordedIssuers(node.nodeId)).toEqual([]);
  });

  let unsigned: { node: AwaitedNode; key: ReturnType<typeof newKey> };
  let apart: Gateway;

  test('switched, and the gateway has not read its files: it reads them and the new one issues', async () => {
    unsigned = { node: await fleet.provision(), key: newKey() };
    await authorizeOnly(unsigned);
    apart = await gatewayOfAnotherHost();
    const rotation_id = await begin(second);
    await writeRotation(second);
    const ca_sha256 = second.signer.caSha256;
    await fleet.operate(appendCommand, {
      stream: CA_STREAM,
      events: [{ type: 'ca_issuer_switched', data: { rotation_id, ca_sha256, gateways: [] } }],
    });
    const enrolled = await fleet.agent();
    expect([issuerOf(enrolled), await recordedIssuers(enrolled.nodeId)]).toEqual(['second', ['second']]);
  });

  test('a certificate of the old one: due, and the renewal is of the new one, with the bundle of both', async () => {
    const asked = await exchange(fleet.gateway.agentUrl, '/v1/agent/identity', { method: 'GET', ...agent });
    expect(asked.body).toMatchObject({ renewal: { due: true, reason: 'issuer' } });
    const key = newKey();
    const next = renewed(agent, key, await renew(fleet, agent, key));
    expect([issuerOf(next), next.ca]).toEqual(['second', second.certPem + first.certPem]);
    using client = new AgentClient(fleet.gateway.agentUrl, next);
    expect((await client.lease()).status).toBe(200);
    const now = await client.send('/v1/agent/identity', { method: 'GET' });
    expect(now.body).toMatchObject({ renewal: { due: false, reason: null } });
    agent = next;
  });

  test('authorised for the old one and never signed: asked again, the old one signs what was authorised', async () => {
    const { node, key } = unsigned;
    const enrolled = renewed({ ...node, ca: '' }, key, await fleet.enroll(node, key));
    expect([issuerOf(enrolled), await recordedIssuers(node.nodeId)]).toEqual(['first', ['first']]);
    const asked = await exchange(fleet.gateway.agentUrl, '/v1/agent/identity', { method: 'GET', ...enrolled });
    expect(asked.body).toMatchObject({ renewal: { due: true, reason: 'issuer' } });
  });

  test('a gateway on a host without the new CA: 503, logged by name, and the secret is still good elsewhere', async () => {
    const node = await fleet.provision();
    expect(told(await enrollAt(apart, node))).toEqual([503, 'unavailable']);
    expect(fleet.logLines.join('')).toContain(
      `no certificate is issued: this gateway does not have the key of the CA that may issue, ${second.signer.caSha256}`,
    );
    expect(await eventsOf(fleet, node.nodeId)).not.toContain('certificate_authorized');
    expect((await fleet.enroll(node)).status).toBe(200);
  });

  test('completed: the same gateway cannot issue from the CA that was replaced', async () => {
    const stale = await inForceOfFirst();
    const { rows } = await fleet.database.pool.query<{ rotation_id: string }>(
      'SELECT rotation_id FROM fleet.fleet_ca WHERE rotation_id IS NOT NULL',
    );
    const data = {
      rotation_id: rows[0]?.rotation_id ?? '',
      previous_ca_sha256: first.signer.caSha256,
      ca_sha256: second.signer.caSha256,
      revoked_certificate_ids: stale,
    };
    await fleet.operate(appendCommand, { stream: CA_STREAM, events: [{ type: 'ca_rotation_completed', data }] });
    const node = await fleet.provision();
    expect(told(await enrollAt(apart, node))).toEqual([503, 'unavailable']);
    expect(await recordedIssuers(node.nodeId)).toEqual([]);
    const answered = await fleet.enroll(node);
    expect(issuerOf({ cert: (answered.body as { certificate_pem: string }).certificate_pem })).toBe('second');
  });

  test('a lost node, whose certificate went with the old CA: refused; enrolled anew it fetches what to clean up', async () => {
    expect(told(await leaseAs(gone))).toEqual([401, 'certificate_unknown']);
    const secret = randomBytes(32).toString('hex');
    const secret_sha256 = hash('sha256', Buffer.from(secret, 'hex'));
    const arm = { node_id: gone.nodeId, secret_sha256, ttl_ms: 900_000, ca_sha256s: [second.signer.caSha256] };
    await fleet.operate(armReenrollmentCommand, arm);
    const key = newKey();
    const back = renewed(gone, key, await fleet.enroll({ nodeId: gone.nodeId, secret }, key));
    const answered = await leaseAs(back);
    expect([issuerOf(back), told(answered)]).toEqual(['second', [403, 'node_lost']]);
    expect(answered.body).toMatchObject({ cleanup: [{ kind: 'teardown_application', instance_id: left }] });
  });

  /** A gateway authorises an enrolment and dies before it signs. */
  async function authorizeOnly({ node, key }: typeof unsigned): Promise<void> {
    const killed = new Error('killed');
    const pki = pkiOf({ ...first.signer, sign: () => Promise.reject(killed) });
    const claim = { nodeId: node.nodeId, secretHex: node.secret, spkiDer: spkiOf(key) };
    const services = { transactor: fleet.operator, pki, lifetimeSeconds: 86_400 };
    await expect(enroll(claim, services, { actor: { kind: 'gateway', id: 'dying' } })).rejects.toBe(killed);
  }

  /** Serial numbers of what the first CA issued and what is not revoked. */
  async function inForceOfFirst(): Promise<string[]> {
    const { rows } = await fleet.database.pool.query<{ id: string }>(
      'SELECT certificate_id AS id FROM fleet.fleet_node_certificates WHERE issuer_ca_sha256 = $1 AND revoked_at IS NULL',
      [first.signer.caSha256],
    );
    return rows.map(({ id }) => id);
  }
});
