import { hash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { revokeCertificatesCommand } from '../../src/commands/certificate.ts';
import { expireLeaseCommand } from '../../src/commands/job.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, type Answered, jobOf, leaseRequest } from './support/client.ts';
import { admit, startFleet, type TestAgent, type TestFleet } from './support/fleet.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const errorOf = ({ status, body }: Answered) => [status, (body as { error?: string }).error];
const NO_JOB = { job: null, target_version: null, log_head: expect.stringMatching(/^1:\d+:[0-9a-f]{32}$/) };

async function withAgent<T>(use: (agent: AgentClient, identity: TestAgent) => Promise<T>, connections = 1): Promise<T> {
  const identity = await fleet.agent();
  using agent = new AgentClient(fleet.gateway.agentUrl, identity, connections);
  return await use(agent, identity);
}

async function statusOf(jobId: string): Promise<unknown> {
  const { rows } = await fleet.database.pool.query('SELECT status, attempt FROM fleet.jobs WHERE job_id = $1', [jobId]);
  return rows[0];
}

/** Moves a lease's deadline into the past. */
async function runOut(jobId: string): Promise<void> {
  await fleet.database.pool.query(
    `UPDATE telemetry.job_leases SET expires_at = clock_timestamp() - interval '1 ms' WHERE job_id = $1`,
    [jobId],
  );
}

/** Holds the decision lock, so that commands wait, until released. */
async function holdDecisions() {
  const client = await fleet.database.pool.connect();
  await client.query(`SELECT pg_advisory_lock(${DECISION_LOCK})`);
  return async () => {
    await client.query(`SELECT pg_advisory_unlock(${DECISION_LOCK})`);
    client.release();
  };
}

/** How many sessions wait for the decision lock. */
async function waitingForLock(): Promise<number> {
  const { rows } = await fleet.database.pool.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows[0]?.count ?? 0;
}

describe('a lease request', () => {
  test('nothing queued: 200 without a job', () =>
    withAgent(async (agent) => {
      const answered = await agent.lease();
      expect([answered.status, answered.body]).toEqual([200, NO_JOB]);
    }));

  test('nothing queued, asked again: no command is decided', () =>
    withAgent(async (agent) => {
      await agent.lease();
      const release = await holdDecisions();
      try {
        const answered = await Promise.all([agent.lease(), agent.lease(), agent.lease()]);
        expect(answered.map(({ status }) => status)).toEqual([200, 200, 200]);
      } finally {
        await release();
      }
    }));

  test('first use and host facts are recorded once', () =>
    withAgent(async (agent, { nodeId }) => {
      await agent.lease();
      await agent.lease();
      const { rows } = await fleet.database.pool.query(
        `SELECT type FROM fleet.fleet_events WHERE node_id = $1 AND type IN ('certificate_first_used', 'node_host_facts_changed')`,
        [nodeId],
      );
      expect(rows.map(({ type }) => type)).toEqual(['certificate_first_used', 'node_host_facts_changed']);
    }));

  test('host facts in free text: recorded as words', () =>
    withAgent(async (agent, { nodeId }) => {
      const { capabilities } = leaseRequest();
      const host = { ...capabilities.host, kernel: '  Linux (6.8) é', docker_version: '±' };
      expect((await agent.lease({ capabilities: { ...capabilities, host } })).status).toBe(200);
      const { rows } = await fleet.database.pool.query(
        'SELECT host_kernel, host_docker_version, host_cpu_count FROM fleet.fleet_nodes WHERE node_id = $1',
        [nodeId],
      );
      expect(rows).toEqual([{ host_kernel: 'Linux_6.8_', host_docker_version: 'unknown', host_cpu_count: 4 }]);
    }));

  test("pool's job: only for an admitted node", () =>
    withAgent(async (agent, { nodeId }) => {
      const jobId = await fleet.queue({ pool: 'application' });
      expect((await agent.lease()).body).toEqual(NO_JOB);
      await waitFor(
        async () =>
          (await fleet.database.pool.query('SELECT 1 FROM telemetry.node_liveness WHERE node_id = $1', [nodeId]))
            .rowCount,
        { what: 'the node is heard' },
      );
      await admit(fleet, nodeId);
      expect(jobOf(await agent.lease()).id).toBe(jobId);
    }));

  test('kind that the agent does not know: not handed out', () =>
    withAgent(async (agent, { nodeId }) => {
      const jobId = await fleet.queue({ nodeId });
      const { capabilities } = leaseRequest();
      expect((await agent.lease({ capabilities: { ...capabilities, kinds: ['build_image'] } })).body).toEqual(NO_JOB);
      expect(jobOf(await agent.lease()).id).toBe(jobId);
    }));

  test('target version: told with every answer', async () => {
    const second = await fleet.startGateway({ PUSHLEFT_AGENT_VERSION: '1.2.3' });
    const identity = await fleet.agent();
    using agent = new AgentClient(second.agentUrl, identity);
    expect((await agent.lease()).body).toEqual({ ...NO_JOB, target_version: '1.2.3' });
  });

  test('one job, ten nodes of the pool at once: one of them gets it', async () => {
    const identities = await Promise.all(Array.from({ length: 10 }, () => fleet.agent('build')));
    for (const { nodeId } of identities) await admit(fleet, nodeId);
    const agents = identities.map((identity) => new AgentClient(fleet.gateway.agentUrl, identity));
    await Promise.all(agents.map((agent) => agent.lease()));
    await fleet.queue({ pool: 'build' });
    const answers = await Promise.all(agents.map((agent) => agent.lease()));
    expect(answers.filter(({ body }) => (body as { job: unknown }).job !== null)).toHaveLength(1);
    for (const agent of agents) agent[Symbol.dispose]();
  });
});

describe('a repeated request_id', () => {
  test('same job, fresh token; the old token is worthless', () =>
    withAgent(async (agent, { nodeId }) => {
      const jobs = [await fleet.queue({ nodeId }), await fleet.queue({ nodeId })];
      const request = { request_id: randomUUID() };
      const [first, again] = [jobOf(await agent.lease(request)), jobOf(await agent.lease(request))];
      expect([first.id, again.id]).toEqual([jobs[0], jobs[0]]);
      expect(again.lease_token).not.toBe(first.lease_token);
      expect(errorOf(await agent.heartbeat(first.id, first.lease_token))).toEqual([409, 'lease_conflict']);
      expect(errorOf(await agent.complete(first.id, first.lease_token))).toEqual([409, 'lease_conflict']);
      expect((await agent.heartbeat(again.id, again.lease_token)).status).toBe(200);
      expect(await statusOf(first.id)).toEqual({ status: 'leased', attempt: 1 });
    }));

  test('at another gateway that knows the node as idle: same job', () =>
    withAgent(async (agent, identity) => {
      const second = await fleet.startGateway();
      using elsewhere = new AgentClient(second.agentUrl, identity);
      await agent.lease();
      await elsewhere.lease();
      const jobId = await fleet.queue({ nodeId: identity.nodeId });
      const request = { request_id: randomUUID() };
      expect(jobOf(await agent.lease(request)).id).toBe(jobId);
      expect(jobOf(await elsewhere.lease(request)).id).toBe(jobId);
    }));

  test('another request while the job is held: no job', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      jobOf(await agent.lease());
      expect((await agent.lease()).body).toEqual(NO_JOB);
    }));
});

describe('a waiting lease request', () => {
  test('job queued meanwhile: answered with it at once', () =>
    withAgent(async (agent, { nodeId }) => {
      await agent.lease();
      const waiting = agent.lease({ wait_seconds: 30 });
      await isWaiting();
      const queuedAt = performance.now();
      const jobId = await fleet.queue({ nodeId });
      expect(jobOf(await waiting).id).toBe(jobId);
      expect(performance.now() - queuedAt).toBeLessThan(2_000);
    }));

  test('revoked meanwhile: 401', () =>
    withAgent(async (agent, { nodeId }) => {
      await agent.lease();
      const waiting = agent.lease({ wait_seconds: 30 });
      await isWaiting();
      await fleet.operate(revokeCertificatesCommand, { node_id: nodeId });
      const answered = await waiting;
      expect([...errorOf(answered), answered.headers.connection]).toEqual([401, 'certificate_unknown', 'close']);
    }));

  test('nothing comes: 200 without a job when its time is over', () =>
    withAgent(async (agent) => {
      const askedAt = performance.now();
      expect((await agent.lease({ wait_seconds: 1 })).body).toEqual(NO_JOB);
      expect(performance.now() - askedAt).toBeGreaterThan(900);
    }));

  test('client gone: nobody waits any more', () =>
    withAgent(async (agent) => {
      await agent.lease();
      const leaving = new AbortController();
      const waiting = agent.lease({ wait_seconds: 30 }, { signal: leaving.signal });
      await isWaiting();
      leaving.abort();
      await expect(waiting).rejects.toThrow();
      await waitFor(async () => (await waitingLeases()) === 0, { what: 'the wait is over' });
    }));

  test('gateway stops: answered without a job', async () => {
    const second = await fleet.startGateway();
    const identity = await fleet.agent();
    using agent = new AgentClient(second.agentUrl, identity);
    await agent.lease();
    const waiting = agent.lease({ wait_seconds: 30 });
    await waitFor(async () => (await waitingLeases(second.adminUrl)) === 1, { what: 'a request waits' });
    await second.close();
    expect((await waiting).body).toEqual(NO_JOB);
  });
});

async function waitingLeases(adminUrl = fleet.gateway.adminUrl): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^pushleft_gateway_waiting_leases (\d+)$/m.exec(text)?.[1]);
}

const isWaiting = () => waitFor(async () => (await waitingLeases()) === 1, { what: 'a request waits' });

describe('revoked between the check and the decision', () => {
  test('revocation decided first: 401, and the job stays queued', () =>
    withAgent(async (agent, { nodeId }) => {
      await agent.lease();
      const jobId = await fleet.queue({ nodeId });
      const release = await holdDecisions();
      const revoked = fleet.operate(revokeCertificatesCommand, { node_id: nodeId });
      await waitFor(async () => (await waitingForLock()) === 1, { what: 'the revocation is in line' });
      const leased = agent.lease(); // authenticated now: the certificate is still in force
      await waitFor(async () => (await waitingForLock()) === 2, { what: 'the lease is in line behind it' });
      await release();
      await revoked;
      expect(errorOf(await leased)).toEqual([401, 'certificate_unknown']);
      expect(await statusOf(jobId)).toEqual({ status: 'queued', attempt: 0 });
    }));

  test('lease decided first: the job is handed out, and the next request gets its 401', () =>
    withAgent(async (agent, { nodeId }) => {
      await agent.lease();
      const jobId = await fleet.queue({ nodeId });
      const release = await holdDecisions();
      const leased = agent.lease();
      await waitFor(async () => (await waitingForLock()) === 1, { what: 'the lease is in line' });
      const revoked = fleet.operate(revokeCertificatesCommand, { node_id: nodeId });
      await waitFor(async () => (await waitingForLock()) === 2, { what: 'the revocation is in line behind it' });
      await release();
      const job = jobOf(await leased);
      await revoked;
      expect(job.id).toBe(jobId);
      expect(errorOf(await agent.heartbeat(jobId, job.lease_token))).toEqual([401, 'certificate_unknown']);
    }));
});

describe('a heartbeat', () => {
  test('extends the lease by a whole term', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      await fleet.database.pool.query(
        `UPDATE telemetry.job_leases SET expires_at = clock_timestamp() + interval '1 s' WHERE job_id = $1`,
        [job.id],
      );
      const askedAt = Date.now();
      const { lease_expires_at: told } = (await agent.heartbeat(job.id, job.lease_token)).body as {
        lease_expires_at: string;
      };
      const { rows } = await fleet.database.pool.query<{ left: number }>(
        `SELECT extract(epoch FROM expires_at - clock_timestamp())::float AS left FROM telemetry.job_leases WHERE job_id = $1`,
        [job.id],
      );
      expect(rows[0]?.left).toBeGreaterThan(55);
      expect(Date.parse(told) - askedAt).toBeGreaterThan(59_000);
      expect(Date.parse(told) - askedAt).toBeLessThanOrEqual(61_000);
    }));

  test.each([
    ['another token', async (agent: AgentClient, jobId: string) => agent.heartbeat(jobId, 'x'.repeat(43))],
    [
      'a job that nobody queued',
      async (agent: AgentClient, _: string, token: string) => agent.heartbeat(randomUUID(), token),
    ],
  ])('%s: 409', (_, beat) =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      expect(errorOf(await beat(agent, job.id, job.lease_token))).toEqual([409, 'lease_conflict']);
    }),
  );

  test("another node's lease: 409", () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      await withAgent(async (thief) => {
        expect(errorOf(await thief.heartbeat(job.id, job.lease_token))).toEqual([409, 'lease_conflict']);
        expect(errorOf(await thief.complete(job.id, job.lease_token))).toEqual([409, 'lease_conflict']);
      });
    }));

  test('run out but not yet taken back: 409', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      await runOut(job.id);
      expect(errorOf(await agent.heartbeat(job.id, job.lease_token))).toEqual([409, 'lease_conflict']);
    }));

  test('guard lost with telemetry: one full fresh lease', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      await fleet.database.pool.query('TRUNCATE telemetry.job_leases');
      expect((await agent.heartbeat(job.id, job.lease_token)).status).toBe(200);
      const { rows } = await fleet.database.pool.query(
        `SELECT node_id, token_sha256, expires_at > clock_timestamp() + interval '50 s' AS full
         FROM telemetry.job_leases WHERE job_id = $1`,
        [job.id],
      );
      expect(rows).toEqual([{ node_id: nodeId, token_sha256: hash('sha256', job.lease_token), full: true }]);
    }));

  test('expired and leased again: the old token gets 409 for ever, the new one is good', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const old = jobOf(await agent.lease());
      await runOut(old.id);
      await fleet.operate(expireLeaseCommand, { job_id: old.id });
      expect(errorOf(await agent.heartbeat(old.id, old.lease_token))).toEqual([409, 'lease_conflict']);
      const next = jobOf(await agent.lease());
      expect(next.id).toBe(old.id);
      expect(errorOf(await agent.complete(old.id, old.lease_token))).toEqual([409, 'lease_conflict']);
      expect((await agent.complete(next.id, next.lease_token)).status).toBe(200);
      expect(errorOf(await agent.complete(old.id, old.lease_token))).toEqual([409, 'lease_conflict']);
    }));
});

describe('a completion', () => {
  test('repeated: 200 and no second event', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      expect((await agent.complete(job.id, job.lease_token)).status).toBe(200);
      expect((await agent.complete(job.id, job.lease_token)).status).toBe(200);
      const { rows } = await fleet.database.pool.query(
        `SELECT count(*)::int AS count FROM fleet.fleet_events WHERE job_id = $1 AND type = 'job_completed'`,
        [job.id],
      );
      expect(rows).toEqual([{ count: 1 }]);
    }));

  test('with another result: 409', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      await agent.complete(job.id, job.lease_token);
      const other = { outcome: 'succeeded', result: { checks: [], duration_ms: 2 } };
      expect(errorOf(await agent.complete(job.id, job.lease_token, other))).toEqual([409, 'lease_conflict']);
    }));

  test("result that is not the kind's: 400, and the lease goes on", () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      const wrong = { outcome: 'succeeded', result: { checks: 'none', duration_ms: 1 } };
      const answered = await agent.complete(job.id, job.lease_token, wrong);
      expect([answered.status, answered.body]).toEqual([
        400,
        { error: 'invalid_request', message: 'result: checks: expected Array' },
      ]);
      expect((await agent.complete(job.id, job.lease_token)).status).toBe(200);
    }));

  test('result: canonical JSON in the erasable table, its digest in the event', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      await agent.complete(job.id, job.lease_token, { outcome: 'succeeded', result: { duration_ms: 7, checks: [] } });
      const { rows } = await fleet.database.pool.query(
        `SELECT b.body, b.sha256, e.data ->> 'result_sha256' AS recorded
         FROM telemetry.bodies b JOIN fleet.fleet_events e USING (job_id)
         WHERE b.job_id = $1 AND b.role = 'result' AND e.type = 'job_completed'`,
        [job.id],
      );
      const body = '{"checks":[],"duration_ms":7}';
      expect(rows).toEqual([{ body, sha256: hash('sha256', body), recorded: hash('sha256', body) }]);
    }));

  test('handed back by an agent that stops: queued again, the attempt not counted', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      const returned = { outcome: 'failed', result: { code: 'agent_stopping', detail: 'told to stop' } };
      expect((await agent.complete(job.id, job.lease_token, returned)).status).toBe(200);
      expect(await statusOf(job.id)).toEqual({ status: 'queued', attempt: 0 });
    }));

  test('failed: the job is failed for good', () =>
    withAgent(async (agent, { nodeId }) => {
      await fleet.queue({ nodeId });
      const job = jobOf(await agent.lease());
      const failed = { outcome: 'failed', result: { code: 'work_failed', detail: 'no disk' } };
      expect((await agent.complete(job.id, job.lease_token, failed)).status).toBe(200);
      expect(await statusOf(job.id)).toEqual({ status: 'failed', attempt: 1 });
    }));
});

test('NUL or a lone surrogate in a string: 400, and the others of the batch are served', () =>
  withAgent(async (agent, { nodeId }) => {
    await fleet.queue({ nodeId });
    const { capabilities, ...rest } = leaseRequest();
    const hostile = (kernel: string) =>
      JSON.stringify({
        ...rest,
        capabilities: { ...capabilities, host: { ...capabilities.host, kernel: 'KERNEL' } },
      }).replace('KERNEL', kernel);
    const answers = await Promise.all([
      agent.send('/v1/agent/lease', { body: hostile(String.raw`a\u0000b`) }),
      agent.send('/v1/agent/lease', { body: hostile(String.raw`a\ud800b`) }),
      agent.send('/v1/agent/lease', {
        body: Buffer.concat([Buffer.from('{"request_id":"'), Buffer.from([0xff, 0xfe])]),
      }),
      agent.lease(),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([400, 400, 400, 200]);
    jobOf(answers[3]);
  }, 4));
