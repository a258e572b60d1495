import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Lease } from '../../agent/gateway-answers.ts';
import { runLeaseLoop } from '../../agent/lease-loop.ts';
import { LeaseMemory } from '../../agent/lease-memory.ts';
import { diskFs } from '../../agent/state-fs.ts';
import { AGENT_VERSION } from '../../agent/version.ts';
import type { HostFacts, LeaseRequest } from '../../src/protocol/lease.ts';
import { waitFor } from '../support/wait-for.ts';
import { capturedLog } from './support/captured-log.ts';
import { type Connected, connect, hurriedTime } from './support/client.ts';
import { grant, idle, LOG_HEAD, problem, type Reply } from './support/stub-gateway.ts';

const FACTS: HostFacts = {
  cpu_count: 4,
  memory_mb: 8_192,
  data_disk_free_gb: null,
  kernel: '6.8.0-generic',
  docker_version: null,
  bridge_netfilter: null,
};

const BOOT_ID = '40000000-0000-4000-8000-00000000000d';

let connected: Connected;
let requests: LeaseRequest[];

beforeEach(async () => {
  connected = await connect();
  requests = [];
});
afterEach(() => connected[Symbol.asyncDispose]());

/** Runs the loop until the gateway has given every reply and one `idle` more; answers what it did. */
async function loopThrough(...replies: readonly Reply[]) {
  const stop = new AbortController();
  const { log, lines } = capturedLog();
  const pauses: number[] = [];
  const leased: Lease[] = [];
  const acknowledged: number[] = [];
  let reloads = 0;
  const before = requests.length;
  connected.gateway.lease = ({ body }) => {
    requests.push(body);
    const reply = replies[requests.length - before - 1];
    if (reply === undefined) stop.abort();
    return reply ?? 'hold';
  };
  await runLeaseLoop(
    {
      gateway: () => connected.client,
      reloadIdentity: async () => {
        reloads += 1;
      },
      acknowledge: async ({ identity }) => void acknowledged.push(identity.generation),
      bootId: BOOT_ID,
      facts: async () => FACTS,
      memory: await LeaseMemory.open(diskFs, connected.directory),
      runJob: async (lease) => void leased.push(lease),
      time: hurriedTime(pauses),
      log,
      waitSeconds: 0,
      kinds: ['diagnose_host'],
    },
    stop.signal,
  );
  return { lines, pauses, leased, reloads, acknowledged };
}

const ids = () => requests.map(({ request_id }) => request_id);

describe('runLeaseLoop', () => {
  test('the request: version, kinds, facts and boot, and from the second on the log head', async () => {
    await loopThrough(idle());
    expect(requests[0]).toEqual({
      request_id: expect.any(String),
      agent_version: AGENT_VERSION,
      capabilities: { kinds: ['diagnose_host'], host: FACTS },
      boot_id: BOOT_ID,
      wait_seconds: 0,
    });
    expect(requests[1]).toMatchObject({ log_head: LOG_HEAD });
  });

  test('an answer each time: a new request id each time', async () => {
    await loopThrough(idle(), grant('20000000-0000-4000-8000-000000000001', 60_000), idle());
    expect(new Set(ids()).size).toBe(4);
  });

  test('lost answers and 503: the same request id until one is answered', async () => {
    const { leased } = await loopThrough(
      'drop',
      problem(503, 'unavailable'),
      grant('20000000-0000-4000-8000-000000000001', 60_000),
    );
    expect(new Set(ids().slice(0, 3)).size).toBe(1);
    expect(ids()[3]).not.toBe(ids()[0]);
    expect(leased.map(({ id }) => id)).toEqual(['20000000-0000-4000-8000-000000000001']);
  });

  test('stopped while a request is held: the next process begins with that request id, once', async () => {
    await loopThrough();
    await loopThrough(idle(), idle());
    expect(ids()[1]).toBe(ids()[0]);
    expect(new Set(ids()).size).toBe(3);
  });

  test('the log head outlives the process', async () => {
    await loopThrough(idle());
    await loopThrough();
    expect(requests.at(-1)).toMatchObject({ log_head: LOG_HEAD });
  });

  test('the gateway away: pauses double from 1 s to 20 s and stay there, and the cause is logged once', async () => {
    await connected.gateway.goAway();
    const { log, lines } = capturedLog();
    const pauses: number[] = [];
    const stop = new AbortController();
    const loop = runLeaseLoop(
      {
        gateway: () => connected.client,
        reloadIdentity: async () => undefined,
        acknowledge: async () => undefined,
        bootId: undefined,
        facts: async () => FACTS,
        memory: await LeaseMemory.open(diskFs, connected.directory),
        runJob: async () => undefined,
        time: hurriedTime(pauses),
        log,
        waitSeconds: 20,
        kinds: ['diagnose_host'],
      },
      stop.signal,
    );
    await waitFor(() => pauses.length >= 8, { what: 'eight failures' });
    stop.abort();
    await loop;
    const within = pauses.slice(0, 8).map((ms, index) => {
      const full = Math.min(20_000, 1_000 * 2 ** index);
      return ms >= full / 2 && ms <= full;
    });
    expect(within).toEqual(Array(8).fill(true));
    expect(lines.filter(({ msg }) => msg === 'lease not answered, trying again')).toHaveLength(1);
  });

  test('429 with Retry-After: waits as long as it is told', async () => {
    const { pauses } = await loopThrough(problem(429, 'rate_limited', {}, { 'retry-after': '42' }));
    expect(pauses[0]).toBe(42_000);
  });

  test('not active: polls slowly, and says each status once', async () => {
    const draining = problem(403, 'node_not_active', { status: 'draining' });
    const { lines, pauses } = await loopThrough(
      draining,
      draining,
      problem(403, 'node_not_active', { status: 'offline' }),
      draining,
      idle(),
    );
    expect(lines.map(({ msg, status }) => status ?? msg)).toEqual(['draining', 'offline', 'draining', 'leasing again']);
    expect(pauses.slice(0, 4).every((ms) => ms >= 10_000 && ms <= 20_000)).toBe(true);
  });

  test('declared lost: polls slowly, says so once with the number of instances to remove', async () => {
    const lost = problem(403, 'node_lost', {
      cleanup: [{ kind: 'teardown_application', instance_id: '30000000-0000-4000-8000-00000000000c', generation: 2 }],
    });
    const { lines, leased } = await loopThrough(lost, lost);
    expect(lines).toMatchObject([{ cleanup: 1, msg: 'the node was declared lost and gets no work any more' }]);
    expect(leased).toEqual([]);
  });

  test('401: names the code once, and looks for another identity before each try', async () => {
    const { lines, reloads } = await loopThrough(
      problem(401, 'certificate_unknown'),
      problem(401, 'certificate_unknown'),
      problem(401, 'certificate_expired'),
    );
    expect(lines.map(({ code }) => code)).toEqual(['certificate_unknown', 'certificate_expired']);
    expect(reloads).toBe(3);
  });

  test('granted, empty or 403: the client is acknowledged; 401, 503 and silence: not, and another identity is looked for', async () => {
    const decided = [
      grant('20000000-0000-4000-8000-000000000001', 60_000),
      idle(),
      problem(403, 'node_lost', { cleanup: [] }),
    ];
    expect(await loopThrough(...decided)).toMatchObject({ acknowledged: [1, 1, 1], reloads: 0 });
    const undecided = [problem(401, 'certificate_unknown'), problem(503, 'unavailable'), 'drop'] as const;
    expect(await loopThrough(...undecided)).toMatchObject({ acknowledged: [], reloads: 3 });
  });

  test.each([
    [
      'a job without a token',
      {
        job: { id: '20000000-0000-4000-8000-000000000001', kind: 'diagnose_host', payload: {} },
        target_version: null,
        log_head: LOG_HEAD,
      },
    ],
    ['an empty object', {}],
  ])('200 with %s: not understood, asked again under the same id', async (_, body) => {
    const { leased } = await loopThrough({ status: 200, body }, idle());
    expect(leased).toEqual([]);
    expect(ids()[1]).toBe(ids()[0]);
  });

  test('200 with fields of a newer gateway: they are ignored', async () => {
    const body = { job: null, target_version: null, log_head: LOG_HEAD, weather: 'fine' };
    const { lines } = await loopThrough({ status: 200, body });
    expect(lines).toMatchObject([{ msg: 'leasing' }]);
  });

  test('a gateway whose clock is a day off: the lease is as long as it says', async () => {
    const dayAgo = Date.now() - 86_400_000;
    const reply = grant('20000000-0000-4000-8000-000000000001', 60_000 - 86_400_000);
    if (typeof reply === 'string') throw new Error('not a grant');
    const { leased } = await loopThrough({ ...reply, headers: { date: new Date(dayAgo).toUTCString() } });
    const leftMs = (leased[0]?.endsAtMs ?? 0) - performance.now();
    expect(leftMs).toBeGreaterThan(55_000);
    expect(leftMs).toBeLessThan(60_000);
  });
});
