import { afterAll, beforeAll, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, jobOf } from './support/client.ts';
import { startFleet, type TestFleet } from './support/fleet.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

test('enrol, lease, heartbeat, complete over mTLS: each step is an event', async () => {
  const identity = await fleet.agent();
  const jobId = await fleet.queue({ nodeId: identity.nodeId });
  using agent = new AgentClient(fleet.gateway.agentUrl, identity);

  const leased = await agent.lease();
  const job = jobOf(leased);
  expect(job).toMatchObject({ id: jobId, kind: 'diagnose_host', payload: {} });
  const beaten = await agent.heartbeat(jobId, job.lease_token);
  expect(beaten.status).toBe(200);
  const completed = await agent.complete(jobId, job.lease_token);
  expect([completed.status, completed.body]).toEqual([200, {}]);

  const { rows } = await fleet.database.pool.query(
    'SELECT type FROM fleet.fleet_events WHERE node_id = $1 OR job_id = $2 ORDER BY position',
    [identity.nodeId, jobId],
  );
  expect(rows.map((row) => row.type)).toEqual([
    'node_provisioning_requested',
    'node_capacity_recorded',
    'node_enrollment_secret_armed',
    'certificate_authorized',
    'certificate_issued',
    'node_enrolled',
    'job_queued',
    'certificate_first_used',
    'node_host_facts_changed',
    'job_leased',
    'job_completed',
  ]);
  await waitFor(
    async () => {
      const seen = await fleet.database.pool.query(
        'SELECT data_disk_free_gb FROM telemetry.node_liveness WHERE node_id = $1',
        [identity.nodeId],
      );
      return seen.rows[0]?.data_disk_free_gb === 50;
    },
    { what: 'the liveness is flushed' },
  );
});
