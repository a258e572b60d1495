import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { revokeCertificatesCommand } from '../../src/commands/certificate.ts';
import { issueAgent, newCa, newKey, pemOf, type TestCa } from '../pki/support.ts';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, exchange, type Identity, leaseRequest, SUCCEEDED } from './support/client.ts';
import { startFleet, type TestFleet } from './support/fleet.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Every route of the agent listener, and one that is none. */
const ROUTES: readonly (readonly [name: string, method: string, path: string, body: object | undefined])[] = [
  ['lease', 'POST', '/v1/agent/lease', leaseRequest()],
  ['heartbeat', 'POST', `/v1/agent/jobs/${randomUUID()}/heartbeat`, { lease_token: 'a'.repeat(43) }],
  ['complete', 'POST', `/v1/agent/jobs/${randomUUID()}/complete`, { lease_token: 'a'.repeat(43), ...SUCCEEDED }],
  ['source', 'GET', `/v1/agent/jobs/${randomUUID()}/source`, undefined],
  ['identity', 'GET', '/v1/agent/identity', undefined],
  ['renew', 'POST', '/v1/agent/certificate/renew', { csr_pem: 'x' }],
  ['healthz', 'GET', '/healthz', undefined],
  ['no route', 'GET', '/v1/agent/nothing', undefined],
];

const UNKNOWN = { error: 'certificate_unknown', message: 'The certificate is not accepted.' };
const EXPIRED = { error: 'certificate_expired', message: 'The certificate has expired.' };

describe.each(ROUTES)('%s', (_, method, path, body) => {
  const sent = { method, ...(body === undefined ? {} : { body }) };

  test('revoked between two requests of a connection: 401 on the next one, connection closed', async () => {
    const identity = await fleet.agent();
    using agent = new AgentClient(fleet.gateway.agentUrl, identity);
    const before = await agent.send(path, sent);
    expect(before.status).not.toBe(401);
    await fleet.operate(revokeCertificatesCommand, { node_id: identity.nodeId });
    const after = await agent.send(path, sent);
    expect([after.status, after.body, after.reused, after.headers.connection]).toEqual([401, UNKNOWN, true, 'close']);
    await waitFor(() => after.socket.destroyed, { what: 'the connection is closed' });
  });

  test('of the trusted CA but never recorded: 401, connection closed', async () => {
    const identity = await strangerOf(fleet.pki.signer);
    const answered = await exchange(fleet.gateway.agentUrl, path, { ...sent, ...identity });
    expect([answered.status, answered.body, answered.headers.connection]).toEqual([401, UNKNOWN, 'close']);
  });

  test('expired before the connection: told so', async () => {
    const identity = await strangerOf(fleet.pki.signer, Date.now() - 7_200_000);
    const answered = await exchange(fleet.gateway.agentUrl, path, { ...sent, ...identity });
    expect([answered.status, answered.body, answered.headers.connection]).toEqual([401, EXPIRED, 'close']);
  });
});

test('expires on an open connection: 401 on every route on the very next request', async () => {
  await using short = await startFleet({ PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS: '600' });
  const identity = await short.agent();
  const clients = ROUTES.map(([, method, path, body]) => {
    const agent = new AgentClient(short.gateway.agentUrl, identity);
    return { agent, ask: () => agent.send(path, { method, ...(body === undefined ? {} : { body }) }) };
  });
  const before = await Promise.all(clients.map(({ ask }) => ask()));
  expect(before.map(({ status }) => status)).not.toContain(401);
  // The database's clock decides, so the end of the certificate is moved instead of waited for.
  await short.database.pool.query(
    `UPDATE fleet.fleet_node_certificates SET not_after = clock_timestamp() - interval '1 ms' WHERE node_id = $1`,
    [identity.nodeId],
  );
  await short.agent(); // any authorising event: rows are read again
  const after = await Promise.all(clients.map(({ ask }) => ask()));
  expect(after.map(({ status, body, reused }) => [status, body, reused])).toEqual(
    ROUTES.map(() => [401, EXPIRED, true]),
  );
  for (const { agent } of clients) agent[Symbol.dispose]();
});

test("kept rows run out by the database's clock, without any event", async () => {
  await using short = await startFleet({ PUSHLEFT_AGENT_CERT_LIFETIME_SECONDS: '4' });
  const identity = await short.agent();
  using agent = new AgentClient(short.gateway.agentUrl, identity);
  expect((await agent.lease()).status).toBe(200);
  await waitFor(async () => (await agent.lease()).status === 401, {
    what: 'the certificate of four seconds has run out',
    deadlineMs: 20_000,
    intervalMs: 100,
  });
  const answered = await exchange(short.gateway.agentUrl, '/healthz', { method: 'GET', ...identity });
  expect([answered.status, answered.body]).toEqual([401, EXPIRED]);
});

describe('closed within a second, without an HTTP byte', () => {
  let otherCa: TestCa;
  beforeAll(async () => {
    otherCa = await newCa('Another CA');
  });

  test('certificate of an untrusted CA', async () => {
    expect(await bytesHeard(await strangerOf(otherCa.signer))).toBe(0);
  });

  test('expired certificate of an untrusted CA', async () => {
    expect(await bytesHeard(await strangerOf(otherCa.signer, Date.now() - 7_200_000))).toBe(0);
  });

  test('no certificate', async () => {
    expect(await bytesHeard({ ca: fleet.pki.bundlePem })).toBe(0);
  });

  test("the gateway's own server certificate", async () => {
    expect(
      await bytesHeard({ ca: fleet.pki.bundlePem, cert: fleet.pki.gatewayCertPem, key: fleet.pki.gatewayKeyPem }),
    ).toBe(0);
  });
});

describe('TLS', () => {
  test('a session that a client kept: not resumed', async () => {
    const identity = await fleet.agent();
    const session = await firstSession(identity);
    const again = connect({ ...addressOf(fleet), ...identity, ...(session === undefined ? {} : { session }) });
    await once(again, 'secureConnect');
    expect(again.isSessionReused()).toBe(false);
    again.destroy();
  });

  test('TLS 1.2: refused', async () => {
    const identity = await fleet.agent();
    const socket = connect({ ...addressOf(fleet), ...identity, maxVersion: 'TLSv1.2' });
    const [error] = (await once(socket, 'error')) as [NodeJS.ErrnoException];
    expect(error.code).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
  });

  test('a connection that never speaks: closed', async () => {
    const socket = createConnection(addressOf(fleet));
    await once(socket, 'close');
  }, 15_000);

  test('headers that never end: closed', async () => {
    const identity = await fleet.agent();
    const socket = connect({ ...addressOf(fleet), ...identity });
    await once(socket, 'secureConnect');
    socket.write('POST /v1/agent/lease HTTP/1.1\r\nHost: gateway\r\nX-Slow: ');
    socket.resume();
    await once(socket, 'close');
  }, 15_000);
});

async function strangerOf(signer: TestCa['signer'], nowMs = Date.now()): Promise<Identity> {
  const key = newKey();
  const { pem } = await issueAgent({ certPem: '', keyPem: '', signer }, key, nowMs, randomUUID());
  return { ca: fleet.pki.bundlePem, cert: pem, key: pemOf(key) };
}

function addressOf({ gateway }: TestFleet) {
  return { host: '127.0.0.1', port: Number(new URL(gateway.agentUrl).port) };
}

/** Sends a whole request at once and counts what comes back until the other side closes. */
async function bytesHeard(identity: Identity): Promise<number> {
  const socket = connect({ ...addressOf(fleet), ...identity });
  let heard = 0;
  const connected = performance.now();
  socket.on('secureConnect', () => socket.write('GET /healthz HTTP/1.1\r\nHost: gateway\r\n\r\n'));
  socket.on('data', (chunk) => {
    heard += chunk.length;
  });
  socket.on('error', () => undefined);
  await once(socket, 'close');
  expect(performance.now() - connected).toBeLessThan(1_000);
  return heard;
}

async function firstSession(identity: Identity): Promise<Buffer | undefined> {
  const socket: TLSSocket = connect({ ...addressOf(fleet), ...identity });
  let session: Buffer | undefined;
  socket.on('session', (given) => {
    session = given;
  });
  await once(socket, 'secureConnect');
  socket.write('GET /healthz HTTP/1.1\r\nHost: gateway\r\nConnection: close\r\n\r\n');
  socket.resume();
  await once(socket, 'close');
  return session;
}
