import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { revokeCertificatesCommand } from '../../src/commands/certificate.ts';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { rebuild } from '../../src/projector/rebuild.ts';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, jobOf } from './support/client.ts';
import { type DatabaseRoad, openRoad } from './support/database-road.ts';
import { NO_LIMITS, startFleet, type TestAgent, type TestFleet } from './support/fleet.ts';

let fleet: TestFleet;
let identity: TestAgent;
let road: DatabaseRoad;
beforeEach(async () => {
  road = await openRoad();
  fleet = await startFleet({}, NO_LIMITS, (url) => road.via(url));
  identity = await fleet.agent();
});
afterEach(async () => {
  await fleet[Symbol.asyncDispose]();
  await road[Symbol.asyncDispose]();
});

async function metrics(): Promise<string> {
  return (await fetch(`${fleet.gateway.adminUrl}/metrics`)).text();
}

describe('the database goes away and comes back', () => {
  test('503 meanwhile, on both listeners; then well, with the same connections', async () => {
    using agent = new AgentClient(fleet.gateway.agentUrl, identity);
    const jobId = await fleet.queue({ nodeId: identity.nodeId });
    const job = jobOf(await agent.lease());
    const awaited = await fleet.provision();
    await road.close();
    const unavailable = { error: 'unavailable', message: 'The control plane cannot answer now. Try again.' };
    for (const answered of [
      await agent.lease(),
      await agent.heartbeat(jobId, job.lease_token),
      await agent.complete(jobId, job.lease_token),
      await fleet.enroll(awaited),
    ]) {
      expect([answered.status, answered.body, answered.headers['retry-after']]).toEqual([503, unavailable, '1']);
    }
    expect((await fetch(`${fleet.gateway.adminUrl}/healthz`)).status).toBe(503);
    expect((await fetch(`${fleet.gateway.adminUrl}/status`)).status).toBe(200);
    await road.open();
    await waitFor(async () => (await agent.complete(jobId, job.lease_token)).status === 200, {
      what: 'the completion is taken',
    });
    expect((await fleet.enroll(awaited)).status).toBe(200);
  });

  test('it falls silent without a word: 503 for agents and for healthz, and the gateway can be closed', async () => {
    using agent = new AgentClient(fleet.gateway.agentUrl, identity);
    await agent.lease();
    road.silence();
    const [leased, healthy] = await Promise.all([agent.lease(), fetch(`${fleet.gateway.adminUrl}/healthz`)]);
    expect([leased.status, healthy.status]).toEqual([503, 503]);
    const started = performance.now();
    await fleet.gateway.close();
    expect(performance.now() - started).toBeLessThan(30_000);
  });

  test('what was heard meanwhile is not lost, and a request that waits is woken afterwards', async () => {
    using agent = new AgentClient(fleet.gateway.agentUrl, identity);
    await agent.lease();
    const waiting = agent.lease({ wait_seconds: 30 });
    await waitFor(async () => (await metrics()).includes('pushleft_gateway_waiting_leases 1\n'), { what: 'it waits' });
    await road.close();
    await road.open();
    const jobId = await fleet.queue({ nodeId: identity.nodeId });
    expect(jobOf(await waiting).id).toBe(jobId);
    await waitFor(
      async () =>
        (await fleet.database.pool.query('SELECT 1 FROM telemetry.node_liveness WHERE node_id = $1', [identity.nodeId]))
          .rowCount,
      { what: 'the liveness is written' },
    );
  });
});

test('projections rebuilt under load: no request fails, and a revocation afterwards is noticed', async () => {
  using agent = new AgentClient(fleet.gateway.agentUrl, identity, 4);
  const pool = createPool({ url: fleet.database.url, program: 'rebuild', limits: READER_LIMITS, max: 2 });
  const stop = new AbortController();
  const statuses = new Set<number>();
  const load = async () => {
    while (!stop.signal.aborted) statuses.add((await agent.lease()).status);
  };
  const running = [load(), load(), load(), load()];
  for (let i = 0; i < 5; i += 1) await rebuild(pool);
  stop.abort();
  await Promise.all(running);
  await pool.end();
  expect([...statuses]).toEqual([200]);
  await fleet.operate(revokeCertificatesCommand, { node_id: identity.nodeId });
  expect((await agent.lease()).status).toBe(401);
});

test('beacon: what the gateway says of itself, removed at the end', async () => {
  const { rows } = await fleet.database.pool.query(`SELECT details FROM telemetry.programs WHERE kind = 'gateway'`);
  expect(rows).toEqual([
    {
      details: {
        addresses: {
          agent: fleet.gateway.agentUrl,
          enroll: fleet.gateway.enrollUrl,
          admin: fleet.gateway.adminUrl,
        },
        trust_bundle_sha256: fleet.pki.bundleSha256,
        pki: {
          trusted_ca_sha256s: [fleet.pki.signer.caSha256],
          issuer_ca_sha256: fleet.pki.signer.caSha256,
          previous_issuer_ca_sha256: null,
          serving: {
            fingerprint_sha256: fleet.pki.serving.fingerprintSha256,
            issuer_ca_sha256: fleet.pki.signer.caSha256,
            not_before: new Date(fleet.pki.serving.notBeforeMs).toISOString(),
            not_after: new Date(fleet.pki.serving.notAfterMs).toISOString(),
          },
          loaded_at: expect.stringMatching(/Z$/),
          error: null,
        },
        reached: expect.any(Number),
        started_at: expect.stringMatching(/Z$/),
        last_flush_at: expect.toSatisfy((at: unknown) => at === null || typeof at === 'string'),
      },
    },
  ]);
  await fleet.gateway.close();
  const after = await fleet.database.pool.query(`SELECT 1 FROM telemetry.programs WHERE kind = 'gateway'`);
  expect(after.rowCount).toBe(0);
});

test('metrics: requests by route and status, leases, queue, ticks, certificate', async () => {
  using agent = new AgentClient(fleet.gateway.agentUrl, identity);
  await fleet.queue({ nodeId: identity.nodeId });
  await agent.lease();
  await agent.send('/nowhere', { method: 'GET' });
  const text = await metrics();
  expect(text).toContain('pushleft_gateway_requests_total{route="lease",status="200"} 1\n');
  expect(text).toContain('pushleft_gateway_requests_total{route="other",status="404"} 1\n');
  expect(text).toContain('pushleft_gateway_requests_total{route="enroll",status="200"} 1\n');
  expect(text).toContain('pushleft_gateway_leases_granted_total 1\n');
  expect(text).toContain('pushleft_gateway_transactor_queue 0\n');
  expect(text).toMatch(/pushleft_gateway_tick_seconds_count [1-9]/);
  expect(text).toMatch(/pushleft_gateway_certificate_seconds \d{6,}/);
});
