import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AgentProcess } from '../agent/support/agent-process.ts';
import { admit, type Host, type ProgramFleet, startProgramFleet } from '../e2e/support/program-fleet.ts';
import { waitFor } from '../support/wait-for.ts';
import { dockerPair } from './support/docker-pair.ts';
import { embeddedPair } from './support/embedded-pair.ts';
import { errorWindowMs, get, type HttpLoad, startHttpLoad } from './support/http-load.ts';
import { clientOf, leaseAs } from './support/lease-as.ts';
import type { Pair } from './support/pair.ts';

const LOST_AFTER_SECONDS = 7;
const HOSTNAME = 'shop.example.com';
const QUICK = { PUSHLEFT_AGENT_LEASE_WAIT_SECONDS: '1' };
const THRESHOLDS = {
  // Agents are heard every other second, and a gateway writes once a second what it heard.
  PUSHLEFT_NODE_UNHEALTHY_AFTER: '5',
  PUSHLEFT_NODE_LOST_AFTER_SECONDS: String(LOST_AFTER_SECONDS),
  PUSHLEFT_ALLOW_SHORT_THRESHOLDS: '1',
};

/** What `fleet events --json` tells of one event, as far as this test looks. */
interface ShownEvent {
  readonly position: number;
  readonly type: string;
  readonly node_id: string | null;
  readonly data: Readonly<Record<string, unknown>>;
}

describe.each([
  ['processes and the embedded ingress', embeddedPair],
  ['containers and Caddy', dockerPair],
] satisfies [string, () => Promise<Pair>][])('a host falls silent: %s', (_, openPair) => {
  let opened: AsyncDisposableStack;
  let fleet: ProgramFleet;
  let pair: Pair;
  let hosts: { a: Host; b: Host; ingress: Host };
  let agents: { a: AgentProcess; b: AgentProcess };
  let ingressPort: number;
  let load: HttpLoad;
  let silentSince: number;
  let firstPosition: number;
  let late: { jobId: string; token: string };

  const json = async (...args: string[]) => {
    const run = await fleet.cli(...args, '--json');
    if (run.code !== 0) throw new Error(`${args.join(' ')}: ${run.stdout}${run.stderr}`);
    return JSON.parse(run.stdout) as unknown;
  };
  const events = async () =>
    ((await json('fleet', 'events', '--limit', '500')) as { events: ShownEvent[] }).events.toSorted(
      (x, y) => x.position - y.position,
    );
  const since = async () => (await events()).filter(({ position }) => position > firstPosition);
  const instances = async () => {
    const { rows } = await fleet.database.pool.query<{ generation: number; status: string; node_id: string | null }>(
      `SELECT generation, status, node_id FROM fleet.application_instances ORDER BY generation`,
    );
    return rows;
  };

  beforeAll(async () => {
    opened = new AsyncDisposableStack();
    fleet = opened.use(await startProgramFleet(THRESHOLDS));
    pair = opened.use(await openPair());
    ingressPort = pair.ingressPort ?? (await freePort());
    const [one, two, ingress] = [
      await fleet.host({ ...QUICK, ...pair.workerEnv }),
      await fleet.host({ ...QUICK, ...pair.workerEnv }),
      await fleet.host({ ...QUICK, ...pair.ingressEnv(ingressPort) }),
    ];
    for (const host of [one, two, ingress]) await fleet.enroll(host);
    const running = new Map([one, two, ingress].map((host) => [host.nodeId, fleet.run(host)]));
    for (const host of [one, two, ingress]) await admit(fleet, host);

    const file = `${fleet.folder}/shop.json`;
    const members = [one.name, two.name];
    await writeFile(file, JSON.stringify(shop(pair, members)));
    const deployed = await fleet.cli('workload', 'deploy', file, '--wait');
    if (deployed.code !== 0) throw new Error(`workload deploy: ${deployed.stdout}${deployed.stderr}`);
    const [first] = await instances();
    const [a, b] = first?.node_id === one.nodeId ? [one, two] : [two, one];
    const [agentA, agentB] = [running.get(a.nodeId), running.get(b.nodeId)];
    if (agentA === undefined || agentB === undefined) throw new Error('an agent is missing');
    hosts = { a, b, ingress };
    agents = { a: agentA, b: agentB };
    load = opened.use(startHttpLoad(ingressPort, HOSTNAME, 50));
    await waitFor(() => load.hits.length >= 20, { what: 'the load runs' });
  });
  afterAll(() => opened?.disposeAsync());

  test('before: live, and every request is answered by the first generation', async () => {
    expect(load.hits.map(({ body }) => body)).toEqual(load.hits.map(() => expect.stringContaining('.web.0.1')));
    expect(await instances()).toEqual([{ generation: 1, status: 'ready', node_id: hosts.a.nodeId }]);
  });

  test('its agent is killed and its instance hangs: the replacement runs on the other host, one generation later', async () => {
    // The agent is idle here and its host's files are ours: a job that it "had" when it died.
    agents.a.child.kill('SIGKILL');
    await agents.a.exited;
    late = await leaseAs(fleet, hosts.a);
    firstPosition = (await events()).at(-1)?.position ?? 0;
    silentSince = performance.now();
    await pair.hang(hosts.a);
    await waitFor(async () => (await get(ingressPort, HOSTNAME).catch(() => '')).includes('.web.0.2'), {
      what: 'the replacement answers',
      deadlineMs: 60_000,
    });
    expect(await instances()).toEqual([
      { generation: 1, status: 'lost', node_id: hosts.a.nodeId },
      { generation: 2, status: 'ready', node_id: hosts.b.nodeId },
    ]);
  });

  test('requests: failed for no longer than the threshold and ten seconds', async () => {
    await delay(1_500); // those that were sent before the change may wait for a second
    const after = load.hits.filter(({ at }) => at >= silentSince);
    expect(after.some(({ body }) => body === undefined)).toBe(true);
    expect(errorWindowMs(after)).toBeLessThanOrEqual((LOST_AFTER_SECONDS + 10) * 1_000);
  });

  test('the log: exactly these events, in this order', async () => {
    await waitFor(async () => (await since()).some(({ type }) => type === 'ingress_route_activated'), {
      what: 'the route is active',
    });
    expect((await since()).map(({ type }) => type)).toEqual([
      'node_became_unhealthy',
      'node_lost',
      'instance_replacement_queued',
      'instance_placed',
      'network_admitted',
      'job_queued',
      'job_leased',
      'job_completed',
      'instance_ready',
      'ingress_route_published',
      'job_queued',
      'job_leased',
      'job_completed',
      'ingress_route_relocated',
      'ingress_route_activated',
    ]);
    const lost = (await since()).find(({ type }) => type === 'node_lost');
    expect(lost?.data).toMatchObject({
      node_id: hosts.a.nodeId,
      fenced_jobs: [{ job_id: late.jobId, kind: 'diagnose_host' }],
      lost_instance_ids: [expect.stringMatching(/\.web\.0\.1$/)],
      replacement_instance_ids: [expect.stringMatching(/\.web\.0\.2$/)],
    });
  });

  test('a late heartbeat and a late completion of the lost host: 409', async () => {
    using client = await clientOf(fleet, hosts.a);
    expect((await client.heartbeat(late.jobId, late.token)).status).toBe(409);
    expect((await client.complete(late.jobId, late.token)).status).toBe(409);
  });

  test("the lost host's agent starts again: 403, it removes its instance, and the other one keeps serving", async () => {
    const from = performance.now();
    expect(await pair.isThere(hosts.a)).toBe(true);
    const again = fleet.run(hosts.a);
    await again.logged('the node was declared lost and gets no work any more');
    await waitFor(async () => !(await pair.isThere(hosts.a)), {
      what: 'the fenced instance is gone',
      deadlineMs: 60_000,
    });
    await waitFor(async () => (await since()).some(({ type }) => type === 'node_cleanup_confirmed'), {
      what: 'the host has said so',
      deadlineMs: 60_000,
    });
    expect(await pair.isThere(hosts.b)).toBe(true);
    const during = load.hits.filter(({ at }) => at >= from);
    expect(during.filter(({ body }) => body?.includes('.web.0.2') !== true)).toEqual([]);
  });

  test('reclaim show: what was fenced, lost, replaced and cleaned', async () => {
    expect(await json('fleet', 'reclaim', 'show', hosts.a.name)).toMatchObject({
      node_id: hosts.a.nodeId,
      status: 'lost',
    });
  });
});

/** One web instance under one hostname, on one of two hosts. */
function shop({ web }: Pair, members: readonly string[]) {
  return {
    name: 'shop',
    org_id: randomUUID(),
    regions: ['fsn1'],
    environment: { sealed: true, members },
    hostnames: [HOSTNAME],
    roles: [
      {
        role: 'web',
        run: 'service',
        count: 1,
        cpu_millis: 100,
        memory_mb: 256,
        disk_gb: 1,
        ...web,
        listens: true,
        readiness_path: '/',
        timeout_seconds: 30,
        serves_hostnames: true,
      },
    ],
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}
