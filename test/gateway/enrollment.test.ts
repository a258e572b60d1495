import {
  createPublicKey,
  generateKeyPairSync,
  hash,
  randomBytes,
  randomUUID,
  sign,
  X509Certificate,
} from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';
import { revokeCertificatesCommand } from '../../src/commands/certificate.ts';
import { failProvisioningCommand } from '../../src/commands/node.ts';
import { enroll } from '../../src/gateway/issuance.ts';
import { csrDer, csrPem, newCa, openssl } from '../pki/support.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, type Answered, exchange } from './support/client.ts';
import { type AwaitedNode, newKey, pkiOf, startFleet, type TestFleet } from './support/fleet.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const certificateOf = ({ body }: Answered) => (body as { certificate_pem: string }).certificate_pem;
const spkiOf = (key: ReturnType<typeof newKey>) => createPublicKey(key).export({ type: 'spki', format: 'der' });

async function eventsOf(nodeId: string): Promise<string[]> {
  const { rows } = await fleet.database.pool.query<{ type: string }>(
    'SELECT type FROM fleet.fleet_events WHERE node_id = $1 ORDER BY position',
    [nodeId],
  );
  return rows.map(({ type }) => type);
}

describe('an issued certificate', () => {
  test('openssl verifies it; profile, names, serial and window are the required ones', async () => {
    await using folder = await temporaryDirectory();
    const node = await fleet.provision();
    const askedAt = Date.now();
    const answered = await fleet.enroll(node);
    expect(answered.status).toBe(200);
    const [file, ca] = [join(folder.path, 'node.pem'), join(folder.path, 'ca.pem')];
    await writeFile(file, certificateOf(answered));
    await writeFile(ca, (answered.body as { ca_pem: string }).ca_pem);

    expect(await openssl('verify', '-CAfile', ca, '-purpose', 'sslclient', '-x509_strict', file)).toContain('OK');
    await expect(openssl('verify', '-CAfile', ca, '-purpose', 'sslserver', file)).rejects.toThrow();
    const text = await openssl('x509', '-in', file, '-noout', '-text', '-nameopt', 'RFC2253');
    expect(text).toContain(`Subject: CN=${node.nodeId}\n`);
    expect(text).toMatch(new RegExp(`X509v3 Subject Alternative Name: *\\n +DNS:${node.nodeId}\\n`));
    expect(text).toMatch(/X509v3 Basic Constraints: critical\n +CA:FALSE\n/);
    expect(text).toMatch(/X509v3 Key Usage: critical\n +Digital Signature\n/);
    expect(text).toMatch(/X509v3 Extended Key Usage: *\n +TLS Web Client Authentication\n/);

    const certificate = new X509Certificate(certificateOf(answered));
    expect(certificate.serialNumber).toMatch(/^01[0-9A-F]{32}$/);
    const nominalStart = certificate.validFromDate.getTime() + 60_000;
    expect(Math.abs(nominalStart - askedAt)).toBeLessThan(2_000);
    const { not_after: notAfter } = answered.body as { not_after: string };
    expect(Date.parse(notAfter)).toBe(nominalStart + 86_400_000);
    expect(certificate.validToDate.getTime()).toBe(nominalStart + 86_400_000);
  });

  test('two nodes: two serials', async () => {
    const [one, other] = [await fleet.agent(), await fleet.agent()];
    expect(new X509Certificate(one.cert ?? '').serialNumber).not.toBe(
      new X509Certificate(other.cert ?? '').serialNumber,
    );
  });
});

describe('refusals', () => {
  test('unknown node, wrong, expired and used secret, failed and enrolled node: the same answer but for Date', async () => {
    const cases = await refusedNodes();
    const answers = await Promise.all(cases.map(({ node }) => fleet.enroll(node)));
    const seen = answers.map(({ status, headers: { date: _, ...headers }, text }) => ({ status, headers, text }));
    expect(seen[0]).toMatchObject({
      status: 401,
      text: JSON.stringify({ error: 'enrollment_refused', message: 'Enrolment refused.' }),
    });
    for (const [i, { name }] of cases.entries()) expect({ name, ...seen[i] }).toEqual({ name, ...seen[0] });
  });

  test('a node id that can be none: 400, whatever the secret', async () => {
    const answered = await fleet.enroll({ nodeId: 'app-1', secret: randomBytes(32).toString('hex') });
    expect([answered.status, (answered.body as { error: string }).error]).toEqual([400, 'invalid_request']);
  });

  test('none of them appends an event', async () => {
    const cases = await refusedNodes();
    const before = await Promise.all(cases.map(({ node }) => eventsOf(node.nodeId)));
    await Promise.all(cases.map(({ node }) => fleet.enroll(node)));
    expect(await Promise.all(cases.map(({ node }) => eventsOf(node.nodeId)))).toEqual(before);
  });
});

/** One node for each reason to refuse. */
async function refusedNodes(): Promise<{ name: string; node: AwaitedNode }[]> {
  const secret = randomBytes(32).toString('hex');
  const expired = await fleet.provision('application', 1);
  const failed = await fleet.provision('application', 1);
  await waitFor(
    async () => {
      const outcome = await fleet.operate(failProvisioningCommand, { node_id: failed.nodeId });
      return outcome.events.length > 0;
    },
    { what: 'the secret has run out' },
  );
  const used = await fleet.agent();
  return [
    { name: 'unknown node', node: { nodeId: randomUUID(), secret } },
    { name: 'wrong secret', node: { ...(await fleet.provision()), secret } },
    { name: 'expired secret', node: expired },
    { name: 'used secret, another key', node: used },
    { name: 'enrolled, wrong secret', node: { ...used, secret } },
    { name: 'failed', node: failed },
  ];
}

describe('a bad request', () => {
  test('bad CSR: 400 with its code, and the secret is still good', async () => {
    const node = await fleet.provision();
    const other = newKey();
    const forged = csrPem(csrDer({ signature: sign('sha256', Buffer.from('something else'), other) }));
    for (const [csr, error] of [
      [createCsr(randomUUID(), newKey()), 'csr_subject_mismatch'],
      [createCsr(node.nodeId, generateKeyPairSync('ec', { namedCurve: 'P-384' }).privateKey), 'csr_key_unsupported'],
      ['-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n', 'csr_malformed'],
      [forged, 'csr_subject_mismatch'],
    ]) {
      const answered = await sendCsr(node, csr ?? '');
      expect([answered.status, (answered.body as { error: string }).error]).toEqual([400, error]);
    }
    expect((await fleet.enroll(node)).status).toBe(200);
  });

  test('anything but POST /v1/enroll: 404', async () => {
    for (const [method, path] of [
      ['GET', '/v1/enroll'],
      ['POST', '/v1/agent/lease'],
      ['POST', '/v1/enroll/'],
      ['GET', '/healthz'],
    ]) {
      const answered = await exchange(fleet.gateway.enrollUrl, path ?? '', {
        method: method ?? '',
        ca: fleet.pki.bundlePem,
      });
      expect([answered.status, (answered.body as { error: string }).error]).toEqual([404, 'not_found']);
    }
  });
});

function sendCsr({ nodeId, secret }: AwaitedNode, csr: string): Promise<Answered> {
  const body = { node_id: nodeId, enrollment_secret: secret, csr_pem: csr };
  return exchange(fleet.gateway.enrollUrl, '/v1/enroll', { ca: fleet.pki.bundlePem, body });
}

describe('one secret', () => {
  test('50 enrolments at once with distinct keys: one certificate, 49 refused alike', async () => {
    const node = await fleet.provision();
    const answers = await Promise.all(Array.from({ length: 50 }, () => fleet.enroll(node, newKey())));
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(49);
    const { rows } = await fleet.database.pool.query(
      'SELECT count(*)::int AS count FROM fleet.fleet_node_certificates WHERE node_id = $1',
      [node.nodeId],
    );
    expect(rows).toEqual([{ count: 1 }]);
  });

  test('20 enrolments at once with one key, by two gateways: the same certificate for all', async () => {
    const second = await fleet.startGateway();
    const node = await fleet.provision();
    const key = newKey();
    const body = { node_id: node.nodeId, enrollment_secret: node.secret, csr_pem: createCsr(node.nodeId, key) };
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, i) =>
        exchange((i % 2 === 0 ? second : fleet.gateway).enrollUrl, '/v1/enroll', { ca: fleet.pki.bundlePem, body }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array.from({ length: 20 }, () => 200));
    expect(new Set(answers.map(certificateOf)).size).toBe(1);
    expect((await eventsOf(node.nodeId)).filter((type) => type === 'certificate_issued')).toHaveLength(1);
  });

  test('answer lost: the same key gets the same certificate again', async () => {
    const node = await fleet.provision();
    const key = newKey();
    const first = await fleet.enroll(node, key);
    const again = await fleet.enroll(node, key);
    expect([again.status, again.text]).toEqual([200, first.text]);
  });

  test('signer crashed between authorisation and signature: the same key gets the certificate that was authorised', async () => {
    const node = await fleet.provision();
    const key = newKey();
    const crash = new Error('killed before the signature');
    const claim = { nodeId: node.nodeId, secretHex: node.secret, spkiDer: spkiOf(key) };
    const signer = { ...fleet.pki.signer, sign: () => Promise.reject(crash) };
    const services = { transactor: fleet.operator, pki: pkiOf(signer), lifetimeSeconds: 86_400 };
    await expect(enroll(claim, services, { actor: { kind: 'gateway', id: 'dying' } })).rejects.toBe(crash);
    expect((await eventsOf(node.nodeId)).at(-1)).toBe('certificate_authorized');

    expect((await fleet.enroll(node, newKey())).status).toBe(401);
    const answered = await fleet.enroll(node, key);
    expect(answered.status).toBe(200);
    const { rows } = await fleet.database.pool.query(
      'SELECT certificate_id, fingerprint FROM fleet.fleet_node_certificates WHERE node_id = $1',
      [node.nodeId],
    );
    const certificate = new X509Certificate(certificateOf(answered));
    expect(rows).toEqual([
      { certificate_id: certificate.serialNumber.toLowerCase(), fingerprint: hash('sha256', certificate.raw) },
    ]);
  });

  test('certificate used: the same key is refused from then on', async () => {
    const node = await fleet.provision();
    const key = newKey();
    const cert = certificateOf(await fleet.enroll(node, key));
    const pem = key.export({ format: 'pem', type: 'pkcs8' }).toString();
    using agent = new AgentClient(fleet.gateway.agentUrl, { ca: fleet.pki.bundlePem, cert, key: pem });
    expect((await agent.lease()).status).toBe(200);
    expect((await fleet.enroll(node, key)).status).toBe(401);
  });

  test('certificate revoked: the same key is refused', async () => {
    const node = await fleet.provision();
    const key = newKey();
    expect((await fleet.enroll(node, key)).status).toBe(200);
    await fleet.operate(revokeCertificatesCommand, { node_id: node.nodeId });
    expect((await fleet.enroll(node, key)).status).toBe(401);
  });
});

describe('a CA that ends before the certificate would', () => {
  const DAY_MS = 86_400_000;
  /** Enrols with a CA of one day that began so long ago. */
  const enrollUnder = async (caAgeMs: number) => {
    const { signer } = await newCa('Short CA', Date.now() - caAgeMs);
    const { nodeId, secret } = await fleet.provision();
    const result = enroll(
      { nodeId, secretHex: secret, spkiDer: spkiOf(newKey()) },
      { transactor: fleet.operator, pki: pkiOf(signer), lifetimeSeconds: 2 * 86_400 },
      { actor: { kind: 'gateway', id: 'test' } },
    );
    return { signer, nodeId, result };
  };

  test('still valid: the certificate ends with it', async () => {
    const { signer, result } = await enrollUnder(DAY_MS - 60_000);
    const issued = await result;
    if (!issued.ok) throw new Error('not issued');
    expect(issued.value.notAfterMs).toBe(signer.caNotAfterMs);
    expect(new X509Certificate(issued.value.certificatePem).validToDate.getTime()).toBe(signer.caNotAfterMs);
  });

  test('over: unavailable, and the secret is not used up', async () => {
    const { nodeId, result } = await enrollUnder(DAY_MS + 60_000);
    expect(await result).toEqual({ ok: false, unavailable: 'the certificate of the issuing CA has expired' });
    expect(await eventsOf(nodeId)).not.toContain('certificate_authorized');
  });
});

test('no secret in log lines, events or commands', async () => {
  const node = await fleet.provision();
  await fleet.enroll(node);
  const { rows } = await fleet.database.pool.query<{ text: string }>(
    'SELECT body AS text FROM log.events UNION ALL SELECT outcome FROM telemetry.commands',
  );
  const everything = [...rows.map(({ text }) => text), ...fleet.logLines].join('\n');
  expect(everything).toContain(node.nodeId);
  expect(everything).not.toContain(node.secret);
});
