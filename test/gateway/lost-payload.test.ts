import { afterAll, beforeAll, expect, test } from 'vitest';
import { AgentClient, jobOf, leaseRequest } from './support/client.ts';
import { startFleet, type TestFleet } from './support/fleet.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

async function erasePayload(jobId: string): Promise<void> {
  await fleet.database.pool.query(`DELETE FROM telemetry.bodies WHERE job_id = $1 AND role = 'payload'`, [jobId]);
}

async function endOf(jobId: string): Promise<unknown> {
  const { rows } = await fleet.database.pool.query(
    'SELECT status, attempt, failure_reason FROM fleet.jobs WHERE job_id = $1',
    [jobId],
  );
  return rows[0];
}

test('payloads of the jobs in front are lost: they fail, the job behind them is leased by the same request', async () => {
  const identity = await fleet.agent();
  using agent = new AgentClient(fleet.gateway.agentUrl, identity);
  const jobs = [];
  for (let i = 0; i < 3; i += 1) jobs.push(await fleet.queue({ nodeId: identity.nodeId }));
  const [first = '', second = '', third] = jobs;
  await erasePayload(first);
  await erasePayload(second);
  const answered = await agent.lease();
  expect([answered.status, jobOf(answered).id]).toEqual([200, third]);
  for (const lost of [first, second]) {
    expect(await endOf(lost)).toEqual({ status: 'failed', attempt: 0, failure_reason: 'payload_missing' });
  }
});

test('the payload is lost after the job was leased and the same request comes again: it fails, nothing is leased', async () => {
  const identity = await fleet.agent();
  using agent = new AgentClient(fleet.gateway.agentUrl, identity);
  const job = await fleet.queue({ nodeId: identity.nodeId });
  const request = leaseRequest();
  expect(jobOf(await agent.lease(request)).id).toBe(job);
  await erasePayload(job);
  const again = await agent.lease(request);
  expect([again.status, again.body]).toMatchObject([200, { job: null }]);
  expect(await endOf(job)).toEqual({ status: 'failed', attempt: 1, failure_reason: 'payload_missing' });
});

test('the payload is not the one that was queued: the job fails, and is handed to nobody', async () => {
  const identity = await fleet.agent();
  using agent = new AgentClient(fleet.gateway.agentUrl, identity);
  const job = await fleet.queue({ nodeId: identity.nodeId });
  await fleet.database.pool.query(`UPDATE telemetry.bodies SET body = '{"checks":["dns"]}' WHERE job_id = $1`, [job]);
  const answered = await agent.lease();
  expect([answered.status, answered.body]).toMatchObject([200, { job: null }]);
  expect(await endOf(job)).toEqual({ status: 'failed', attempt: 0, failure_reason: 'payload_missing' });
});
