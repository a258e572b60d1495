import { hash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { revokeCertificatesCommand } from '../../src/commands/certificate.ts';
import { deployCommand } from '../../src/commands/deployment.ts';
import { queueJobCommand } from '../../src/commands/job.ts';
import { buildJob, teardownApplicationJob } from '../../src/commands/workload-jobs.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import type { InstanceState } from '../../src/domain/deployment/state.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import { CLEANUP_MAX } from '../../src/protocol/limits.ts';
import { LEASE_TOKEN_HEADER } from '../../src/protocol/routes.ts';
import { loseCommand } from '../support/lose.ts';
import { waitFor } from '../support/wait-for.ts';
import { workloadSamples } from '../support/workload-events.ts';
import { AgentClient, type Answered, jobOf } from './support/client.ts';
import { admit, startFleet, type TestAgent, type TestFleet } from './support/fleet.ts';
import { appendCommand } from './support/renewal.ts';
import { running } from './support/running.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const KINDS = { capabilities: { ...leaseCapabilities(), kinds: ['diagnose_host', 'teardown_application', 'build'] } };
const CONFLICT = [409, 'lease_conflict'];
const errorOf = ({ status, body }: Answered) => [status, (body as { error?: string }).error];
const cleanupOf = ({ body }: Answered) => (body as { cleanup: { instance_id: string }[] }).cleanup;
const lose = ({ nodeId }: TestAgent) => fleet.operate(loseCommand, { node_id: nodeId });

function leaseCapabilities() {
  const host = { cpu_count: 4, memory_mb: 8_192, data_disk_free_gb: 50, kernel: '6.12', docker_version: null };
  return { kinds: ['diagnose_host'], host: { ...host, bridge_netfilter: null } };
}

function client(agent: TestAgent): AgentClient {
  return new AgentClient(fleet.gateway.agentUrl, agent);
}

const append = (stream: string, ...events: readonly FleetEvent[]) => fleet.operate(appendCommand, { stream, events });

describe('a lost node', () => {
  test('late heartbeat and late completion: 409; the lease that it had is fenced', async () => {
    const agent = await fleet.agent();
    using connection = client(agent);
    await fleet.queue({ nodeId: agent.nodeId });
    const { id, lease_token } = jobOf(await connection.lease());
    await lose(agent);
    expect(errorOf(await connection.heartbeat(id, lease_token))).toEqual(CONFLICT);
    expect(errorOf(await connection.complete(id, lease_token))).toEqual(CONFLICT);
    const { rows } = await fleet.database.pool.query(
      `SELECT status, failure_reason, lease_token_sha256, leased_to FROM fleet.jobs WHERE job_id = $1`,
      [id],
    );
    expect(rows).toEqual([
      { status: 'failed', failure_reason: 'node_lost', lease_token_sha256: null, leased_to: null },
    ]);
  });

  test('lease: 403 node_lost with what it has to remove, again and again until it says that it is gone', async () => {
    const agent = await fleet.agent();
    using connection = client(agent);
    const [first = '', second = ''] = await running(fleet, agent, 2);
    await lose(agent);
    const answered = await connection.lease();
    expect(errorOf(answered)).toEqual([403, 'node_lost']);
    const task = (instance_id: string) => ({ kind: 'teardown_application', instance_id, generation: 1 });
    expect(cleanupOf(answered)).toEqual([task(first), task(second)]);
    expect(cleanupOf(await connection.lease())).toEqual([task(first), task(second)]);
    expect(cleanupOf(await connection.lease({ cleaned: [first] }))).toEqual([task(second)]);
    expect(cleanupOf(await connection.lease({ cleaned: [first, second] }))).toEqual([]);
    expect(cleanupOf(await connection.lease())).toEqual([]);
    const { rows } = await fleet.database.pool.query(
      `SELECT data ->> 'instance_ids' AS ids FROM fleet.fleet_events WHERE type = 'node_cleanup_confirmed' AND node_id = $1 ORDER BY position`,
      [agent.nodeId],
    );
    expect(rows).toEqual([{ ids: JSON.stringify([first]) }, { ids: JSON.stringify([second]) }]);
  });

  test('more to remove than one answer takes: the rest comes once the first are gone', async () => {
    const agent = await fleet.agent();
    using connection = client(agent);
    const ids = await running(fleet, agent, CLEANUP_MAX + 3);
    await lose(agent);
    const first = cleanupOf(await connection.lease()).map(({ instance_id }) => instance_id);
    expect(first).toHaveLength(CLEANUP_MAX);
    const rest = cleanupOf(await connection.lease({ cleaned: first })).map(({ instance_id }) => instance_id);
    expect(rest).toHaveLength(3);
    expect(new Set([...first, ...rest])).toEqual(new Set(ids));
  });

  test("another node's instances: never its own to confirm", async () => {
    const [agent, other] = await Promise.all([fleet.agent(), fleet.agent()]);
    using connection = client(agent);
    const [theirs = ''] = await running(fleet, other, 1);
    await lose(agent);
    await lose(other);
    await connection.lease({ cleaned: [theirs] });
    using owner = client(other);
    expect(cleanupOf(await owner.lease()).map(({ instance_id }) => instance_id)).toEqual([theirs]);
  });

  test('work that waits for it or its pool: never leased', async () => {
    const agent = await fleet.agent();
    using connection = client(agent);
    await connection.lease();
    await admit(fleet, agent.nodeId);
    await lose(agent);
    await fleet.queue({ nodeId: agent.nodeId });
    await fleet.queue({ pool: 'application' });
    expect(errorOf(await connection.lease())).toEqual([403, 'node_lost']);
  });
});

describe('a completion against the loss of its node', () => {
  test.each(['completion first', 'loss first'])('%s: exactly one of the two counts', async (order) => {
    const agent = await fleet.agent();
    using connection = client(agent);
    await fleet.queue({ nodeId: agent.nodeId });
    const { id, lease_token } = jobOf(await connection.lease());
    const complete = () => connection.complete(id, lease_token);
    const steps: (() => Promise<unknown>)[] =
      order === 'completion first' ? [complete, () => lose(agent)] : [() => lose(agent), complete];
    const outcomes = await inThisOrder(steps);
    const completed = order === 'completion first';
    expect(outcomes).toContainEqual(expect.objectContaining(completed ? { status: 200 } : { status: 409 }));
    const { rows } = await fleet.database.pool.query(
      `SELECT status, failure_reason FROM fleet.jobs WHERE job_id = $1`,
      [id],
    );
    expect(rows).toEqual([
      completed ? { status: 'completed', failure_reason: null } : { status: 'failed', failure_reason: 'node_lost' },
    ]);
  });
});

/** Holds the decision lock until each step waits for it behind the one before: PostgreSQL gives it to them in that order. */
async function inThisOrder(steps: readonly (() => Promise<unknown>)[]): Promise<unknown[]> {
  const holder = await fleet.database.pool.connect();
  try {
    await holder.query(`SELECT pg_advisory_lock(${DECISION_LOCK})`);
    const running: Promise<unknown>[] = [];
    for (const step of steps) {
      running.push(step());
      await waitFor(async () => (await waitingForLock()) === running.length, { what: 'the step waits for the lock' });
    }
    await holder.query(`SELECT pg_advisory_unlock(${DECISION_LOCK})`);
    return await Promise.all(running);
  } finally {
    holder.release();
  }
}

async function waitingForLock(): Promise<number> {
  const { rows } = await fleet.database.pool.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
  );
  return rows[0]?.count ?? 0;
}

describe('a draining node', () => {
  const drain = async ({ nodeId: node_id }: TestAgent) =>
    append(nodeStream(node_id), {
      type: 'node_drain_started',
      data: { node_id, migrate: true, max_in_flight: 1, deadline_at: null },
    });

  test('jobs that take away what it has: leased, and nothing else', async () => {
    const agent = await fleet.agent();
    using connection = client(agent);
    const [instance_id = ''] = await running(fleet, agent, 1);
    await drain(agent);
    await fleet.queue({ nodeId: agent.nodeId });
    expect(errorOf(await connection.lease(KINDS))).toEqual([403, 'node_not_active']);
    const job = teardownApplicationJob(
      randomUUID(),
      { instance_id, generation: 1, node_id: agent.nodeId } as InstanceState,
      null,
    );
    await fleet.operate(queueJobCommand, job);
    expect(jobOf(await connection.lease(KINDS)).id).toBe(job.job_id);
    expect(errorOf(await connection.lease(KINDS))).toEqual([403, 'node_not_active']);
  });
});

describe('the source of a build', () => {
  // More than the sockets between gateway and agent hold.
  const SOURCE = randomBytes(15_000_000);
  const SHA256 = hash('sha256', SOURCE);

  async function leased() {
    const agent = await fleet.agent('build');
    await fleet.database.pool.query(
      `INSERT INTO telemetry.sources (sha256, body) VALUES ($1, $2) ON CONFLICT DO NOTHING`,
      [SHA256, SOURCE],
    );
    const deployment_id = randomUUID();
    const build = { source_sha256: SHA256, source_bytes: SOURCE.length, command: ['make'], timeout_seconds: 60 };
    const job = buildJob(randomUUID(), deployment_id, workloadSamples.deployment_created.data.org_id, build);
    const own = { ...job, node_id: agent.nodeId, pool: null };
    const deployment = {
      ...workloadSamples.deployment_created.data,
      deployment_id,
      name: `b-${deployment_id}`,
      hostnames: [],
      build,
      build_job_id: job.job_id,
    };
    await fleet.operate(deployCommand, { deployment, build: own });
    const connection = client(agent);
    const { id, lease_token } = jobOf(await connection.lease(KINDS));
    const download = (token: string) =>
      connection.send(`/v1/agent/jobs/${id}/source`, { method: 'GET', headers: { [LEASE_TOKEN_HEADER]: token } });
    return { agent, connection, id, lease_token, download };
  }

  test('the holder of the lease: the bytes, with their digest', async () => {
    const { connection, download, lease_token } = await leased();
    using _ = connection;
    const answered = await download(lease_token);
    expect(answered.status).toBe(200);
    expect(answered.headers).toMatchObject({ 'content-length': String(SOURCE.length), 'x-content-sha256': SHA256 });
  });

  test('without the token, with another, and after the loss: 409', async () => {
    const { agent, connection, id, download, lease_token } = await leased();
    using _ = connection;
    expect(errorOf(await connection.send(`/v1/agent/jobs/${id}/source`, { method: 'GET' }))).toEqual(CONFLICT);
    expect(errorOf(await download('a'.repeat(43)))).toEqual(CONFLICT);
    await lose(agent);
    expect(errorOf(await download(lease_token))).toEqual(CONFLICT);
  });

  test('the build of a lost node: fails its deployment', async () => {
    const { agent, connection } = await leased();
    connection[Symbol.dispose]();
    await lose(agent);
    const { rows } = await fleet.database.pool.query(
      `SELECT type, data ->> 'code' AS code FROM fleet.fleet_events ORDER BY position DESC LIMIT 1`,
    );
    expect(rows).toEqual([{ type: 'deployment_failed', code: 'node_lost' }]);
  });

  test.each([
    [
      'its certificate is revoked',
      ({ nodeId }: TestAgent) => fleet.operate(revokeCertificatesCommand, { node_id: nodeId }),
    ],
    ['its node is lost', lose],
  ])('a download that runs while %s: ends short', async (_, end) => {
    const { agent, connection, id, lease_token } = await leased();
    connection[Symbol.dispose]();
    const { ca, cert = '', key = '' } = agent;
    const url = new URL(`/v1/agent/jobs/${id}/source`, fleet.gateway.agentUrl);
    const asking = request(url, { ca, cert, key, agent: false, headers: { [LEASE_TOKEN_HEADER]: lease_token } });
    asking.end();
    const [response] = (await once(asking, 'response')) as [IncomingMessage];
    await once(response, 'readable');
    await end(agent);
    let bytes = 0;
    const reading = async () => {
      for await (const chunk of response) bytes += (chunk as Buffer).length;
    };
    await expect(reading()).rejects.toThrow('aborted');
    expect(bytes).toBeGreaterThan(0);
    expect(bytes).toBeLessThan(SOURCE.length);
  });
});
