import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AgentProcess } from '../agent/support/agent-process.ts';
import { startProgram } from '../e2e/support/program.ts';
import { admit, type Host, type ProgramFleet, startProgramFleet } from '../e2e/support/program-fleet.ts';
import { waitFor } from '../support/wait-for.ts';
import { embeddedPair, isAlive, leaders } from './support/embedded-pair.ts';
import { clientOf, leaseAs } from './support/lease-as.ts';
import type { Pair } from './support/pair.ts';

const DEADLINE_MS = 60_000;
const THRESHOLDS = {
  PUSHLEFT_NODE_UNHEALTHY_AFTER: '5',
  PUSHLEFT_NODE_LOST_AFTER_SECONDS: '7',
  PUSHLEFT_ALLOW_SHORT_THRESHOLDS: '1',
};
const AGENT = { PUSHLEFT_AGENT_LEASE_WAIT_SECONDS: '1' };

let opened: AsyncDisposableStack;
let fleet: ProgramFleet;
let pair: Pair;
let hosts: { a: Host; b: Host };
let agentOfA: AgentProcess;
/** The scheduler that led first, and its term. */
let first: { pid: number; term: number };
/** A lease that the first host had when it was stopped. */
let late: { jobId: string; token: string };

const rowsOf = async <R extends object>(text: string): Promise<R[]> => (await fleet.database.pool.query<R>(text)).rows;

async function leader(): Promise<{ pid: number; term: number }> {
  const [row] = await rowsOf<{ holder: string; term: number }>('SELECT holder, term FROM telemetry.scheduler');
  return { pid: Number(row?.holder.split(':').at(-1)), term: row?.term ?? 0 };
}

/** Where each instance is: role, generation, status and node. */
const instances = async () =>
  (
    await rowsOf<{ role: string; generation: number; status: string; node_id: string | null }>(
      'SELECT role, generation, status, node_id FROM fleet.application_instances ORDER BY role, generation',
    )
  ).map(({ role, generation, status, node_id }) => [role, generation, status, nameOf(node_id)]);

function nameOf(nodeId: string | null): string {
  return nodeId === hosts.a.nodeId ? 'a' : nodeId === hosts.b.nodeId ? 'b' : '-';
}

const countOf = async (type: string) =>
  (await rowsOf<{ count: number }>(`SELECT count(*)::int AS count FROM log.events WHERE type = '${type}'`))[0]?.count;

beforeAll(async () => {
  opened = new AsyncDisposableStack();
  fleet = opened.use(await startProgramFleet(THRESHOLDS, { PUSHLEFT_LEASE_SECONDS: '3' }));
  const replica = { DATABASE_URL: fleet.database.url, PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: '0.2', ...THRESHOLDS };
  opened.use(startProgram('scheduler', replica));
  pair = opened.use(await embeddedPair());
  const [a, b] = [await fleet.host({ ...AGENT, ...pair.workerEnv }), await fleet.host({ ...AGENT, ...pair.workerEnv })];
  hosts = { a, b };
  for (const host of [a, b]) await fleet.enroll(host);
  agentOfA = fleet.run(a);
  fleet.run(b);
  await admit(fleet, a);
  await deploy('shop', [a.name, b.name], service());
  await waitFor(async () => (await instances()).some(([, , status]) => status === 'ready'), {
    what: 'the service is ready',
    deadlineMs: DEADLINE_MS,
  });
  await deploy('sums', [a.name], JOB);
  await waitFor(async () => (await leaders(a.stateDir)).filter(isAlive).length === 2, {
    what: 'the service and the job run on the first host',
    deadlineMs: DEADLINE_MS,
  });
  await admit(fleet, b);
  first = await leader();
});
afterAll(async () => {
  // A stopped process takes no other signal.
  if (first !== undefined) process.kill(first.pid, 'SIGCONT');
  await opened?.disposeAsync();
});

test('the scheduler that leads is stopped: the other leads, in the next term', async () => {
  process.kill(first.pid, 'SIGSTOP');
  await waitFor(async () => (await leader()).pid !== first.pid, { what: 'the other leads', deadlineMs: DEADLINE_MS });
  expect((await leader()).term).toBe(first.term + 1);
});

test('an agent is stopped past its lease and its loss: its service runs on the other host; its job may run nowhere else', async () => {
  agentOfA.child.kill('SIGSTOP');
  late = await leaseAs(fleet, hosts.a);
  await waitFor(async () => (await instances()).some(([, , status, on]) => on === 'b' && status === 'ready'), {
    what: 'the replacement is ready',
    deadlineMs: DEADLINE_MS,
  });
  expect(await instances()).toEqual([
    ['crunch', 1, 'lost', 'a'],
    ['crunch', 2, 'pending_placement', '-'],
    ['web', 1, 'lost', 'a'],
    ['web', 2, 'ready', 'b'],
  ]);
});

test('the scheduler goes on: it stands by, and nothing is decided twice', async () => {
  process.kill(first.pid, 'SIGCONT');
  await waitFor(
    async () => {
      const [old] = await rowsOf<{ leads: boolean; fresh: boolean }>(
        `SELECT (details ->> 'leader')::boolean AS leads, beacon_at > clock_timestamp() - interval '1 second' AS fresh
         FROM telemetry.programs WHERE kind = 'scheduler' AND program LIKE '%:${first.pid}'`,
      );
      return old?.fresh === true && !old.leads;
    },
    { what: 'the old leader stands by', deadlineMs: DEADLINE_MS },
  );
  expect((await leader()).pid).not.toBe(first.pid);
  expect([await countOf('node_lost'), await countOf('instance_replacement_queued')]).toEqual([1, 2]);
});

test('the agent goes on: its work is ended and removed, what it was leased is refused, the other host serves', async () => {
  agentOfA.child.kill('SIGCONT');
  await agentOfA.logged('lease lost, work ended');
  using client = await clientOf(fleet, hosts.a);
  expect((await client.heartbeat(late.jobId, late.token)).status).toBe(409);
  expect((await client.complete(late.jobId, late.token)).status).toBe(409);
  await agentOfA.logged('the node was declared lost and gets no work any more');
  await waitFor(async () => !(await leaders(hosts.a.stateDir)).some(isAlive), {
    what: 'nothing of it runs any more',
    deadlineMs: DEADLINE_MS,
  });
  await waitFor(
    async () =>
      (await rowsOf(`SELECT 1 FROM fleet.application_instances WHERE status = 'lost' AND cleaned_at IS NULL`))
        .length === 0,
    { what: 'the host has said so', deadlineMs: DEADLINE_MS },
  );
  expect((await leaders(hosts.b.stateDir)).filter(isAlive)).toHaveLength(1);
  expect(
    await rowsOf(`SELECT 1 FROM fleet.jobs WHERE kind = 'ensure_application' AND status = 'completed'`),
  ).toHaveLength(2);
});

const SIZE = { count: 1, cpu_millis: 100, memory_mb: 256, disk_gb: 1, serves_hostnames: false };
const service = () => ({
  role: 'web',
  run: 'service',
  ...SIZE,
  ...pair.web,
  listens: true,
  readiness_path: '/',
  timeout_seconds: 30,
});
/** It does not end by itself, so that its host holds a lease. */
const JOB = {
  role: 'crunch',
  run: 'job',
  ...SIZE,
  image: 'host',
  command: [process.execPath, '-e', 'setInterval(() => undefined, 1000)'],
  listens: false,
  timeout_seconds: 600,
};

/** Deploys one role on some hosts and on no others. */
async function deploy(name: string, members: readonly string[], role: object): Promise<void> {
  const file = `${fleet.folder}/${name}.json`;
  const environment = { sealed: true, members };
  await writeFile(
    file,
    JSON.stringify({ name, org_id: randomUUID(), regions: ['fsn1'], environment, hostnames: [], roles: [role] }),
  );
  const deployed = await fleet.cli('workload', 'deploy', file);
  if (deployed.code !== 0) throw new Error(`workload deploy: ${deployed.stdout}${deployed.stderr}`);
}
