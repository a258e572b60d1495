import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemTime } from '../../agent/time.ts';
import { type Connected, connect } from './support/client.ts';
import { grant, heartbeatFor, problem, type Reply } from './support/stub-gateway.ts';

const LEASE_MS = 60_000;
const REQUEST = {
  request_id: '30000000-0000-4000-8000-000000000001',
  agent_version: '0.1.0',
  capabilities: {
    kinds: ['diagnose_host' as const],
    host: {
      cpu_count: 4,
      memory_mb: 8_192,
      data_disk_free_gb: null,
      kernel: '6.8.0-generic',
      docker_version: null,
      bridge_netfilter: null,
    },
  },
};

/** The agent's monotonic clock, ms: moved by the test. */
let clockMs: number;
let connected: Connected;
let heartbeats: number;

beforeEach(async () => {
  clockMs = 0;
  heartbeats = 0;
  connected = await connect({ ...systemTime, nowMs: () => clockMs });
});
afterEach(() => connected[Symbol.asyncDispose]());

/** A reply that the gateway wrote at once, and that was `delayMs` on its way. */
function slow(reply: Reply, delayMs: number): Reply {
  if (typeof reply === 'string') throw new Error('there is no reply');
  clockMs += delayMs;
  return { ...reply, headers: { date: new Date().toUTCString() } };
}

/** A lease whose answer takes `delayMs`. */
async function leaseAfter(delayMs: number) {
  connected.gateway.lease = () => slow(grant('20000000-0000-4000-8000-000000000001', LEASE_MS), delayMs);
  const answer = await connected.client.lease(REQUEST, new AbortController().signal);
  return answer.kind === 'job' ? answer.lease.endsAtMs : answer;
}

/** The end of what lasts `LEASE_MS` from `fromMs` on, by a Date header of whole seconds: never later, at most two seconds earlier. */
function expectEnd(endsAtMs: unknown, fromMs: number): void {
  expect(endsAtMs).toBeLessThanOrEqual(fromMs + LEASE_MS);
  expect(endsAtMs).toBeGreaterThan(fromMs + LEASE_MS - 2_000);
}

describe('when a lease ends', () => {
  beforeEach(() => {
    connected.gateway.heartbeat = () => {
      heartbeats += 1;
      return slow(heartbeatFor(LEASE_MS), 0);
    };
  });

  test('answered at once: its length from now on', async () => {
    expectEnd(await leaseAfter(0), 0);
    expect(heartbeats).toBe(0);
  });

  test('the answer was slow: counted from the question, not from the answer', async () => {
    expectEnd(await leaseAfter(10_000), 0);
    expect(heartbeats).toBe(0);
  });

  test('the answer took half of it: extended before the work begins', async () => {
    expectEnd(await leaseAfter(LEASE_MS / 2), LEASE_MS / 2);
    expect(heartbeats).toBe(1);
  });

  test('the answer took more than all of it, and the lease is over: no job, to be asked again', async () => {
    connected.gateway.heartbeat = () => problem(409, 'lease_conflict');
    expect(await leaseAfter(LEASE_MS + 1)).toEqual({
      kind: 'undecided',
      reason: 'the lease was over before its answer came',
      retryAfterMs: null,
    });
  });

  test('the answer took more than all of it, and the gateway went away: no job', async () => {
    connected.gateway.heartbeat = () => problem(503, 'unavailable');
    expect(await leaseAfter(LEASE_MS + 1)).toMatchObject({ kind: 'undecided' });
  });
});

test('a heartbeat whose answer was slow: counted from the question', async () => {
  connected.gateway.heartbeat = () => slow(heartbeatFor(LEASE_MS), 20_000);
  const lease = {
    id: '20000000-0000-4000-8000-000000000001',
    token: 'token-of-20000000-0000-4000-8000-000000000001-0123456789',
  };
  const answer = await connected.client.heartbeat(lease, new AbortController().signal);
  expectEnd(answer.kind === 'extended' ? answer.endsAtMs : answer, 0);
});
