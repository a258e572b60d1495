import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expireLeaseCommand } from '../../src/commands/job.ts';
import { AgentClient, jobOf } from './support/client.ts';
import { startFleet, type TestFleet } from './support/fleet.ts';

const ROUNDS = 40;
const JOBS = 25;

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

/** Takes the job's one attempt back, if its lease has run out by now. */
async function expire(jobId: string): Promise<boolean> {
  return (await fleet.operate(expireLeaseCommand, { job_id: jobId })).events.length > 0;
}

test('a thousand leases that end while heartbeat and expiry race: exactly one wins each, and both do', async () => {
  const { nodeId, ...identity } = await fleet.agent();
  using agent = new AgentClient(fleet.gateway.agentUrl, identity, JOBS);
  const won = { heartbeat: 0, expiry: 0 };
  for (let round = 0; round < ROUNDS; round += 1) {
    await Promise.all(Array.from({ length: JOBS }, () => fleet.queue({ nodeId }, 1)));
    const jobs = (await Promise.all(Array.from({ length: JOBS }, () => agent.lease()))).map(jobOf);
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(JOBS);
    const race = async (job: (typeof jobs)[number], i: number) => {
      await delay(i % 3);
      const [beaten, taken] = await Promise.all([
        agent.heartbeat(job.id, job.lease_token),
        delay(i % 5).then(() => expire(job.id)),
      ]);
      return { job, extended: beaten.status === 200, taken };
    };
    // The barrier: all leases are told to end within the next milliseconds, and all set off at once.
    await fleet.database.pool.query(
      `UPDATE telemetry.job_leases SET expires_at = clock_timestamp() + random() * interval '20 ms' WHERE job_id = ANY($1)`,
      [jobs.map(({ id }) => id)],
    );
    for (const { job, extended, taken } of await Promise.all(jobs.map(race))) {
      expect({ job: job.id, both: extended && taken }).toEqual({ job: job.id, both: false });
      // The heartbeat may have come too late and the expiry too early; then the expiry wins as soon as it is asked again.
      if (!extended) expect(taken || (await expire(job.id))).toBe(true);
      const completed = await agent.complete(job.id, job.lease_token);
      expect(completed.status).toBe(extended ? 200 : 409);
      won[extended ? 'heartbeat' : 'expiry'] += 1;
    }
  }
  expect(won.heartbeat + won.expiry).toBe(ROUNDS * JOBS);
  expect(won.heartbeat).toBeGreaterThan(0);
  expect(won.expiry).toBeGreaterThan(0);
}, 180_000);
