import { hash, randomBytes, randomUUID, X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';
import { recordIssuedCommand, revokeCertificatesCommand } from '../../src/commands/certificate.ts';
import { armReenrollmentCommand } from '../../src/commands/node.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import { AwaitedNodes } from '../../src/gateway/awaited-nodes.ts';
import { type IssuanceServices, renewCertificate } from '../../src/gateway/issuance.ts';
import { openssl } from '../pki/support.ts';
import { sample } from '../support/events.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, exchange, jobOf, leaseRequest, SUCCEEDED } from './support/client.ts';
import { newKey, pkiOf, startFleet, type TestAgent, type TestFleet } from './support/fleet.ts';
import {
  appendCommand,
  dueAgent,
  eventsOf,
  makeDue,
  renew,
  renewed,
  renewedAgent,
  spkiOf,
  told,
} from './support/renewal.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const certificateOf = ({ cert = '' }: TestAgent) => new X509Certificate(cert);
const serialOf = (agent: TestAgent) => certificateOf(agent).serialNumber.toLowerCase();
const connect = (agent: TestAgent) => new AgentClient(fleet.gateway.agentUrl, agent);
const identityOf = (agent: TestAgent) =>
  exchange(fleet.gateway.agentUrl, '/v1/agent/identity', { method: 'GET', ...agent });

async function leaseAs(agent: TestAgent) {
  using client = connect(agent);
  return await client.lease();
}

/** The rows of a node's certificates, oldest first. */
async function certificatesOf(nodeId: string) {
  const { rows } = await fleet.database.pool.query(
    `SELECT certificate_id AS id, cause, replaces_id AS replaces, first_used_at IS NOT NULL AS used, revoked_reason AS revoked
     FROM fleet.fleet_node_certificates WHERE node_id = $1 ORDER BY authorized_position`,
    [nodeId],
  );
  return rows;
}

function become(nodeId: string, event: FleetEvent) {
  return fleet.operate(appendCommand, { stream: nodeStream(nodeId), events: [event] });
}

const unhealthy = (node_id: string): FleetEvent => ({
  type: 'node_became_unhealthy',
  data: { node_id, silent_ms: 90_000 },
});
const draining = (node_id: string): FleetEvent => ({
  type: 'node_drain_started',
  data: { ...sample.node_drain_started.data, node_id },
});
const lost = (node_id: string): FleetEvent => ({ type: 'node_lost', data: { ...sample.node_lost.data, node_id } });
const retired = (node_id: string): FleetEvent => ({ type: 'node_retired', data: { node_id } });

describe('a certificate that is not due', () => {
  test('renewal: 409, no event; identity says the same', async () => {
    const agent = await fleet.agent();
    const before = await eventsOf(fleet, agent.nodeId);
    expect(told(await renew(fleet, agent))).toEqual([409, 'renewal_not_due']);
    expect(await eventsOf(fleet, agent.nodeId)).toEqual(before);
    expect((await identityOf(agent)).body).toMatchObject({ renewal: { due: false, reason: null } });
  });
});

describe('a certificate with less than a third of its life left', () => {
  test('renewal: a certificate for the new key, which replaces the one it was asked with; openssl agrees', async () => {
    await using folder = await temporaryDirectory();
    const agent = await dueAgent(fleet);
    expect((await identityOf(agent)).body).toMatchObject({ renewal: { due: true, reason: 'lifetime' } });
    const key = newKey();
    const askedAt = Date.now();
    const answered = await renew(fleet, agent, key);
    const next = renewed(agent, key, answered);

    const { not_after: notAfter, ...pems } = answered.body as { not_after: string };
    expect(Object.keys(pems)).toEqual(['certificate_pem', 'ca_pem']);
    expect(next.ca).toBe(fleet.pki.bundlePem);
    expect(certificateOf(next).validToDate.toISOString()).toBe(notAfter);
    expect(Math.abs(Date.parse(notAfter) - askedAt - 86_400_000)).toBeLessThan(2_000);
    expect(certificateOf(next).publicKey.equals(certificateOf(agent).publicKey)).toBe(false);
    const [file, ca] = [join(folder.path, 'node.pem'), join(folder.path, 'ca.pem')];
    await writeFile(file, next.cert ?? '');
    await writeFile(ca, next.ca);
    expect(await openssl('verify', '-CAfile', ca, '-purpose', 'sslclient', '-x509_strict', file)).toContain('OK');
    const text = await openssl('x509', '-in', file, '-noout', '-text', '-nameopt', 'RFC2253');
    expect(text).toContain(`Subject: CN=${agent.nodeId}\n`);
    expect(text).toMatch(new RegExp(`X509v3 Subject Alternative Name: *\\n +DNS:${agent.nodeId}\\n`));
    expect(text).toMatch(/X509v3 Basic Constraints: critical\n +CA:FALSE\n/);
    expect(text).toMatch(/X509v3 Extended Key Usage: *\n +TLS Web Client Authentication\n/);
    expect(await certificatesOf(agent.nodeId)).toEqual([
      { id: serialOf(agent), cause: 'enrollment', replaces: null, used: false, revoked: null },
      { id: serialOf(next), cause: 'renewal', replaces: serialOf(agent), used: false, revoked: null },
    ]);
    expect((await identityOf(next)).body).toMatchObject({ renewal: { due: false, reason: null } });
  });

  test("in another node's name: 400, nothing is appended", async () => {
    const [agent, other] = [await dueAgent(fleet), await fleet.agent()];
    const before = await Promise.all([agent, other].map(({ nodeId }) => eventsOf(fleet, nodeId)));
    const body = { csr_pem: createCsr(other.nodeId, newKey()) };
    const answered = await exchange(fleet.gateway.agentUrl, '/v1/agent/certificate/renew', { ...agent, body });
    expect(told(answered)).toEqual([400, 'csr_subject_mismatch']);
    expect(await Promise.all([agent, other].map(({ nodeId }) => eventsOf(fleet, nodeId)))).toEqual(before);
  });

  test('answer lost, the same key again: the same certificate, no new event', async () => {
    const agent = await dueAgent(fleet);
    const key = newKey();
    const first = await renew(fleet, agent, key);
    const before = await eventsOf(fleet, agent.nodeId);
    const again = await renew(fleet, agent, key);
    expect([again.status, again.text]).toEqual([200, first.text]);
    expect(await eventsOf(fleet, agent.nodeId)).toEqual(before);
  });

  test('answer lost, another key: another certificate; the one that is used retires all before it', async () => {
    const agent = await dueAgent(fleet);
    const forgotten = await renewedAgent(fleet, agent);
    const kept = await renewedAgent(fleet, agent);
    expect(serialOf(kept)).not.toBe(serialOf(forgotten));
    expect((await leaseAs(kept)).status).toBe(200);
    expect(await certificatesOf(agent.nodeId)).toEqual([
      { id: serialOf(agent), cause: 'enrollment', replaces: null, used: false, revoked: 'superseded' },
      { id: serialOf(forgotten), cause: 'renewal', replaces: serialOf(agent), used: false, revoked: 'superseded' },
      { id: serialOf(kept), cause: 'renewal', replaces: serialOf(agent), used: true, revoked: null },
    ]);
    const outcomes = await Promise.all([agent, forgotten, kept].map(async (each) => (await leaseAs(each)).status));
    expect(outcomes).toEqual([401, 401, 200]);
    expect((await eventsOf(fleet, agent.nodeId)).filter((type) => type === 'certificates_revoked')).toHaveLength(1);
  });

  test('8 renewals at once, each for another key: four certificates, four are told when to come back', async () => {
    const agent = await dueAgent(fleet);
    const answers = await Promise.all(Array.from({ length: 8 }, () => renew(fleet, agent)));
    const granted = answers.filter(({ status }) => status === 200);
    expect(new Set(granted.map(({ text }) => text)).size).toBe(4);
    const denied = answers.filter(({ status }) => status !== 200);
    expect(denied.map((answer) => [...told(answer), answer.headers['retry-after']])).toEqual(
      Array.from({ length: 4 }, () => [429, 'rate_limited', '60']),
    );
  });

  test('8 renewals at once with one key, by two gateways: the same certificate for all', async () => {
    const second = await fleet.startGateway();
    const agent = await dueAgent(fleet);
    const key = newKey();
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, i) => renew(fleet, agent, key, (i % 2 === 0 ? second : fleet.gateway).agentUrl)),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 8 }, () => 200));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect((await eventsOf(fleet, agent.nodeId)).filter((type) => type === 'certificate_issued')).toHaveLength(2);
  });
});

describe('until the new certificate is used', () => {
  test('the old one leases, completes and renews', async () => {
    const agent = await dueAgent(fleet);
    await renewedAgent(fleet, agent);
    const jobId = await fleet.queue({ nodeId: agent.nodeId });
    using old = connect(agent);
    const { lease_token: token } = jobOf(await old.lease());
    expect((await old.heartbeat(jobId, token)).status).toBe(200);
    expect((await old.complete(jobId, token)).status).toBe(200);
    expect((await renew(fleet, agent)).status).toBe(200);
  });

  test('every other route with the new one: the old one stays good', async () => {
    const agent = await dueAgent(fleet);
    const next = await renewedAgent(fleet, agent);
    using client = connect(next);
    for (const path of ['/healthz', '/v1/agent/identity'])
      expect((await client.send(path, { method: 'GET' })).status).toBe(200);
    expect(told(await renew(fleet, next))).toEqual([409, 'renewal_not_due']);
    expect((await leaseAs(agent)).status).toBe(200);
  });
});

describe("the new certificate's first lease request", () => {
  const token = { lease_token: 'a'.repeat(43) };
  const ROUTES: readonly (readonly [name: string, method: string, path: string, body?: object])[] = [
    ['lease', 'POST', '/v1/agent/lease', leaseRequest()],
    ['heartbeat', 'POST', `/v1/agent/jobs/${randomUUID()}/heartbeat`, token],
    ['complete', 'POST', `/v1/agent/jobs/${randomUUID()}/complete`, { ...token, ...SUCCEEDED }],
    ['source', 'GET', `/v1/agent/jobs/${randomUUID()}/source`],
    ['identity', 'GET', '/v1/agent/identity'],
    ['renew', 'POST', '/v1/agent/certificate/renew', { csr_pem: 'x' }],
    ['healthz', 'GET', '/healthz'],
  ];

  test('the old one gets 401 on every route, on connections that are open and by any gateway', async () => {
    const second = await fleet.startGateway();
    const agent = await dueAgent(fleet);
    const open = ROUTES.map(([name, method, path, body], i) => {
      const client = new AgentClient((i % 2 === 0 ? fleet.gateway : second).agentUrl, agent);
      return { name, client, ask: () => client.send(path, { method, ...(body === undefined ? {} : { body }) }) };
    });
    const before = await Promise.all(open.map(({ ask }) => ask()));
    expect(before.map(({ status }) => status)).not.toContain(401);
    const next = await renewedAgent(fleet, agent);
    expect((await leaseAs(next)).status).toBe(200);
    const after = await Promise.all(
      open.map(async ({ name, ask }) => {
        const answered = await ask();
        return [name, answered.reused, ...told(answered)];
      }),
    );
    expect(after).toEqual(ROUTES.map(([name]) => [name, true, 401, 'certificate_unknown']));
    for (const { client } of open) client[Symbol.dispose]();
  });

  test('a lease request of the old one that waits: ended with 401', async () => {
    const agent = await dueAgent(fleet);
    using old = connect(agent);
    const waiting = old.lease({ wait_seconds: 25 });
    await waitFor(async () => (await certificatesOf(agent.nodeId))[0]?.used === true, { what: 'the old one waits' });
    const next = await renewedAgent(fleet, agent);
    expect((await leaseAs(next)).status).toBe(200);
    expect(told(await waiting)).toEqual([401, 'certificate_unknown']);
  });

  test('answered 403: it counts as well', async () => {
    const agent = await dueAgent(fleet);
    await become(agent.nodeId, draining(agent.nodeId));
    const next = await renewedAgent(fleet, agent);
    const answered = await leaseAs(next);
    expect([...told(answered), answered.body]).toEqual([
      403,
      'node_not_active',
      expect.objectContaining({ status: 'draining' }),
    ]);
    expect((await certificatesOf(agent.nodeId)).map(({ used, revoked }) => [used, revoked])).toEqual([
      [false, 'superseded'],
      [true, null],
    ]);
    expect((await leaseAs(agent)).status).toBe(401);
  });
});

describe('a node that is not active', () => {
  test.for([
    ['unhealthy', unhealthy, 200, 'active'],
    ['draining', draining, 403, 'draining'],
    ['lost', lost, 403, 'lost'],
  ] as const)('%s: renews and is heard; the lease after it: %i, then %s', async ([, event, answer, status]) => {
    const agent = await dueAgent(fleet);
    await become(agent.nodeId, event(agent.nodeId));
    const next = await renewedAgent(fleet, agent);
    expect((await leaseAs(next)).status).toBe(answer);
    expect((await identityOf(next)).body).toMatchObject({ status, renewal: { due: false } });
    await waitFor(
      async () => {
        const { rowCount } = await fleet.database.pool.query(
          'SELECT 1 FROM telemetry.node_liveness WHERE node_id = $1',
          [agent.nodeId],
        );
        return rowCount === 1;
      },
      { what: 'it was heard' },
    );
  });

  test('retired: 401', async () => {
    const agent = await dueAgent(fleet);
    await become(agent.nodeId, retired(agent.nodeId));
    expect(told(await renew(fleet, agent))).toEqual([401, 'certificate_unknown']);
  });

  test('revoked: 401, before its request is looked at', async () => {
    const agent = await dueAgent(fleet);
    await fleet.operate(revokeCertificatesCommand, { node_id: agent.nodeId });
    const body = { csr_pem: 'x' };
    const answered = await exchange(fleet.gateway.agentUrl, '/v1/agent/certificate/renew', { ...agent, body });
    expect(told(answered)).toEqual([401, 'certificate_unknown']);
  });
});

describe('enrolling anew', () => {
  async function arm(nodeId: string) {
    const secret = randomBytes(32).toString('hex');
    const secret_sha256 = hash('sha256', Buffer.from(secret, 'hex'));
    await fleet.operate(armReenrollmentCommand, { node_id: nodeId, secret_sha256, ttl_ms: 900_000, ca_sha256s: [] });
    return { nodeId, secret };
  }

  test.for([
    ['active', undefined, 200, 'active'],
    ['unhealthy', unhealthy, 200, 'active'],
    ['draining', draining, 403, 'draining'],
    ['lost', lost, 403, 'lost'],
  ] as const)(
    '%s: a certificate whose first use revokes those before; the lease: %i, then %s',
    async ([, event, answer, status]) => {
      const agent = await fleet.agent();
      if (event !== undefined) await become(agent.nodeId, event(agent.nodeId));
      const key = newKey();
      const again = renewed(agent, key, await fleet.enroll(await arm(agent.nodeId), key));
      const leased = await leaseAs(again);
      expect(leased.status).toBe(answer);
      expect((await identityOf(again)).body).toMatchObject({ status });
      expect((await certificatesOf(agent.nodeId)).map(({ cause, revoked }) => [cause, revoked])).toEqual([
        ['enrollment', 'superseded'],
        ['reenrollment', null],
      ]);
      expect((await leaseAs(agent)).status).toBe(401);
    },
  );

  test('lost: can fetch what to clean up, and nothing else', async () => {
    const agent = await fleet.agent();
    await fleet.queue({ nodeId: agent.nodeId });
    await become(agent.nodeId, lost(agent.nodeId));
    await fleet.operate(revokeCertificatesCommand, { node_id: agent.nodeId });
    const key = newKey();
    const again = renewed(agent, key, await fleet.enroll(await arm(agent.nodeId), key));
    const answered = await leaseAs(again);
    expect([answered.status, answered.body]).toEqual([
      403,
      { error: 'node_lost', message: 'The node was declared lost; its work runs elsewhere.', cleanup: [] },
    ]);
  });

  test('retired with a secret from before: refused', async () => {
    const agent = await fleet.agent();
    const claim = await arm(agent.nodeId);
    await become(agent.nodeId, retired(agent.nodeId));
    expect(told(await fleet.enroll(claim))).toEqual([401, 'enrollment_refused']);
  });

  test('in a flood of strangers: a node with a secret is awaited, one without is not', async () => {
    const [armed, idle] = [await fleet.agent(), await fleet.agent()];
    await arm(armed.nodeId);
    const awaited = new AwaitedNodes(fleet.database.pool);
    await awaited.refresh();
    expect([armed, idle].map(({ nodeId }) => awaited.has(nodeId))).toEqual([true, false]);
  });
});

describe('a gateway that dies', () => {
  const killed = new Error('killed');

  /** Renews with a gateway that dies on the way, and tells which events it left. */
  async function dieRenewing(agent: TestAgent, key: ReturnType<typeof newKey>, services: Partial<IssuanceServices>) {
    const { transactor, pki } = { transactor: fleet.operator, pki: pkiOf(fleet.pki.signer) };
    const fingerprint = hash('sha256', certificateOf(agent).raw);
    const claim = { nodeId: agent.nodeId, fingerprint, spkiDer: spkiOf(key) };
    const dying = renewCertificate(
      claim,
      { transactor, pki, lifetimeSeconds: 86_400, ...services },
      { actor: { kind: 'gateway', id: 'dying' } },
    );
    await expect(dying).rejects.toBe(killed);
    return (await eventsOf(fleet, agent.nodeId)).slice(-2);
  }

  /** Asks a gateway that lives with the same key, and which certificate it is given. */
  async function askAgain(agent: TestAgent, key: ReturnType<typeof newKey>) {
    const next = renewed(agent, key, await renew(fleet, agent, key));
    expect((await certificatesOf(agent.nodeId)).map(({ id }) => id)).toEqual([serialOf(agent), serialOf(next)]);
    expect((await leaseAs(next)).status).toBe(200);
  }

  test('between authorisation and signature: the same key gets the certificate that was authorised', async () => {
    const [agent, key] = [await dueAgent(fleet), newKey()];
    const pki = pkiOf({ ...fleet.pki.signer, sign: () => Promise.reject(killed) });
    expect(await dieRenewing(agent, key, { pki })).toEqual(['node_enrolled', 'certificate_authorized']);
    await askAgain(agent, key);
  });

  test('between signature and record: the same key gets the certificate that was authorised, signed anew', async () => {
    const [agent, key] = [await dueAgent(fleet), newKey()];
    const transactor: IssuanceServices['transactor'] = {
      execute: (definition, command, options) =>
        definition.name === recordIssuedCommand.name
          ? Promise.reject(killed)
          : fleet.operator.execute(definition, command, options),
    };
    expect(await dieRenewing(agent, key, { transactor })).toEqual(['node_enrolled', 'certificate_authorized']);
    await askAgain(agent, key);
  });

  test('after which the agent asks with another key: the one that was never signed is retired with the rest', async () => {
    const [agent, key] = [await dueAgent(fleet), newKey()];
    await dieRenewing(agent, key, { pki: pkiOf({ ...fleet.pki.signer, sign: () => Promise.reject(killed) }) });
    const next = await renewedAgent(fleet, agent);
    expect((await leaseAs(next)).status).toBe(200);
    expect((await certificatesOf(agent.nodeId)).map(({ revoked }) => revoked)).toEqual([
      'superseded',
      'superseded',
      null,
    ]);
    await makeDue(fleet, agent.nodeId);
    expect(told(await renew(fleet, agent, key))).toEqual([401, 'certificate_unknown']);
  });
});
