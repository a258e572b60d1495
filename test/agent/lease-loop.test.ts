import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Cleanup } from '../../agent/cleanup.ts';
import type { Lease } from '../../agent/gateway-answers.ts';
import { runLeaseLoop } from '../../agent/lease-loop.ts';
import { LeaseMemory } from '../../agent/lease-memory.ts';
import type { Runtime } from '../../agent/runtime/runtime.ts';
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
/** After which requests services were looked after. */
let tended: number[];
/** What removes instances from the host, for this test. */
let remove: Runtime['remove'];

beforeEach(async () => {
  connected = await connect();
  requests = [];
  tended = [];
  remove = () => Promise.reject(new Error('the engine is away'));
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
      cleanup: new Cleanup({ remove }, log),
      tend: async () => void tended.push(requests.length),
      time: hurriedTime(pauses),
      log,
      waitSeconds: 0,
      kinds: ['diagnose_host'],
    },
    stop.signal,
  );
  return { lines, pauses, leased, reloads, acknowledged };
}

const instance = (generation: number) => `50000000-0000-4000-8000-00000000000d.web.0.${generation}`;
const fenced = (generation: number) => ({
  kind: 'teardown_application',
  instance_id: instance(generation),
  generation,
});
const lost = (...cleanup: readonly object[]) => problem(403, 'node_lost', { cleanup });

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
        cleanup: new Cleanup({ remove }, log),
        tend: async () => void tended.push(requests.length),
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
    const { lines, pauses, leased } = await loopThrough(lost(), lost());
    expect(lines).toMatchObject([{ cleanup: 0, msg: 'the node was declared lost and gets no work any more' }]);
    expect(pauses.slice(0, 2).every((ms) => ms >= 10_000 && ms <= 20_000)).toBe(true);
    expect(leased).toEqual([]);
  });

  test('declared lost with instances to remove: each is removed at its generation, and the gateway told once, soon', async () => {
    const removals: object[] = [];
    remove = async (ref) => removals.push(ref) === 1;
    const { pauses } = await loopThrough(lost(fenced(1), fenced(2)), lost());
    expect(removals).toEqual([
      { id: instance(1), generation: 1 },
      { id: instance(2), generation: 2 },
    ]);
    expect(requests.map(({ cleaned }) => cleaned)).toEqual([undefined, [instance(1), instance(2)], undefined]);
    expect(pauses[0]).toBe(2_000);
  });

  test('services: looked after when each lease is answered, or is not; before a job begins; not while declared lost', async () => {
    await loopThrough(idle(), grant('20000000-0000-4000-8000-000000000001', 60_000), 'drop', lost(), idle());
    expect(tended).toEqual([1, 2, 3, 5]);
  });

  test('what the gateway was told and did not answer: told again', async () => {
    remove = async () => true;
    await loopThrough(lost(fenced(1)), problem(503, 'unavailable'), lost());
    expect(requests.map(({ cleaned }) => cleaned)).toEqual([undefined, [instance(1)], [instance(1)], undefined]);
  });

  test('an instance that cannot be removed: logged, not told, tried again with the next list; the others are removed', async () => {
    const removals: string[] = [];
    remove = async ({ id }) => {
      removals.push(id);
      if (removals.length === 1) throw new Error('the engine is away');
      return true;
    };
    const { lines } = await loopThrough(lost(fenced(1), fenced(2)), lost(fenced(1)));
    expect(requests.map(({ cleaned }) => cleaned)).toEqual([undefined, [instance(2)], [instance(1)]]);
    expect(lines).toContainEqual(
      expect.objectContaining({ msg: 'instance not removed', instance: instance(1), reason: 'the engine is away' }),
    );
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
