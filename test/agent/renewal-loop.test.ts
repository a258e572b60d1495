import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { IdentityAnswer } from '../../agent/gateway-answers.ts';
import type { GatewayConnection, SwapOutcome } from '../../agent/gateway-connection.ts';
import { runRenewalLoop } from '../../agent/renewal-loop.ts';
import { renewalPointMs } from '../../agent/renewal-point.ts';
import { capturedLog } from './support/captured-log.ts';
import { NODE_ID } from './support/host.ts';
import { VirtualTime } from './support/virtual-time.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.parse('2026-03-01T00:00:00.000Z');
const CHECK_EVERY_MS = 600 * 1_000;

type Renewal = Awaited<ReturnType<GatewayConnection['renew']>>;

/** An agent whose gateway's clock is the virtual one; the host's own is off by `hostAheadMs`. */
function startAgent(time: VirtualTime, name: string, more: { readonly hostAheadMs?: number } = {}) {
  const stop = new AbortController();
  const { log, lines } = capturedLog();
  const checks: number[] = [];
  const renewals: number[] = [];
  let issuedMs = time.wallMs();
  let fingerprintSha256 = sha256(`${name} 0`);
  const state = {
    isIssuerCurrent: true,
    /** What the gateway says instead of who this is. */
    instead: undefined as IdentityAnswer | undefined,
    renewal: { kind: 'swapped' } as Renewal,
    adopted: { kind: 'unchanged' } as SwapOutcome,
  };
  const window = () => ({ notBeforeMs: issuedMs, notAfterMs: issuedMs + DAY_MS, fingerprintSha256 });
  function reason(): 'issuer' | 'lifetime' | null {
    if (!state.isIssuerCurrent) return 'issuer';
    return window().notAfterMs - time.wallMs() < DAY_MS / 3 ? 'lifetime' : null;
  }
  async function askIdentity(): Promise<IdentityAnswer> {
    checks.push(time.wallMs());
    if (state.instead !== undefined) return state.instead;
    const identity = {
      node_id: NODE_ID,
      status: 'active',
      certificate: {
        fingerprint_sha256: fingerprintSha256,
        serial: '01',
        not_before: new Date(window().notBeforeMs).toISOString(),
        not_after: new Date(window().notAfterMs).toISOString(),
      },
      trust_bundle_sha256: sha256('bundle'),
      renewal: { due: reason() !== null, reason: reason() },
    };
    const serverTimeMs = Math.floor(time.wallMs() / 1_000) * 1_000;
    return { kind: 'known', identity, time: { sentAtMs: time.nowMs(), serverTimeMs } };
  }
  async function renew(): Promise<Renewal> {
    renewals.push(time.wallMs());
    if (state.renewal.kind !== 'swapped') return state.renewal;
    state.isIssuerCurrent = true;
    issuedMs = time.wallMs();
    fingerprintSha256 = sha256(`${name} ${renewals.length}`);
    return state.renewal;
  }
  const wrongTime = {
    nowMs: () => time.nowMs(),
    wallMs: () => time.wallMs() + (more.hostAheadMs ?? 0),
    random: () => time.random(),
    pause: (ms: number, signal?: AbortSignal) => time.pause(ms, signal),
  };
  const connection = { client: { askIdentity }, adoptStaged: async () => state.adopted, renew };
  const ended = runRenewalLoop({ connection, time: wrongTime, log, checkEveryMs: CHECK_EVERY_MS }, stop.signal);
  return { state, checks, renewals, lines, window, ended, stop: () => stop.abort() };
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const gaps = (moments: readonly number[]) => moments.slice(1).map((at, index) => at - (moments[index] ?? at));

describe('runRenewalLoop', () => {
  test('nothing due: the first check within a minute, then ten minutes apart give or take two; nothing is renewed', async () => {
    const time = new VirtualTime(START_MS);
    const agent = startAgent(time, 'a');
    await time.pass(15 * HOUR_MS);
    expect((agent.checks[0] ?? 0) - START_MS).toBeLessThan(MINUTE_MS);
    const distances = gaps(agent.checks);
    expect(Math.min(...distances)).toBeGreaterThanOrEqual(8 * MINUTE_MS);
    expect(Math.max(...distances)).toBeLessThanOrEqual(12 * MINUTE_MS);
    expect(new Set(distances).size).toBe(distances.length);
    expect(agent.renewals).toEqual([]);
    expect(agent.lines).toEqual([]);
  });

  test('due by lifetime: renewed once, at the own point to the second, and the next day again', async () => {
    const time = new VirtualTime(START_MS);
    const agent = startAgent(time, 'a');
    const points = [renewalPointMs(agent.window())];
    await time.pass(22 * HOUR_MS);
    points.push(renewalPointMs(agent.window()));
    await time.pass(22 * HOUR_MS);
    expect(agent.renewals).toHaveLength(2);
    for (const [index, at] of agent.renewals.entries()) {
      expect(at - (points[index] ?? 0)).toBeGreaterThanOrEqual(0);
      expect(at - (points[index] ?? 0)).toBeLessThan(1_500);
    }
  });

  test('due by the issuer: renewed at the very next check', async () => {
    const time = new VirtualTime(START_MS);
    const agent = startAgent(time, 'a');
    await time.pass(HOUR_MS);
    agent.state.isIssuerCurrent = false;
    await time.pass(12 * MINUTE_MS);
    expect(agent.renewals).toHaveLength(1);
    expect(agent.lines).toMatchObject([{ msg: 'certificate renewed', reason: 'issuer' }]);
  });

  test('not answered, 429 with a Retry-After of 300 s: tried again within a minute, and after those 300 s', async () => {
    const time = new VirtualTime(START_MS);
    const agent = startAgent(time, 'a');
    agent.state.isIssuerCurrent = false;
    agent.state.renewal = { kind: 'unanswered', reason: 'HTTP 503 unavailable', retryAfterMs: 0 };
    await time.pass(10 * MINUTE_MS);
    expect(agent.renewals.length).toBeGreaterThanOrEqual(9);
    agent.state.renewal = { kind: 'unanswered', reason: 'HTTP 429 rate_limited', retryAfterMs: 300_000 };
    await time.pass(MINUTE_MS);
    agent.renewals.splice(0);
    await time.pass(HOUR_MS);
    expect(Math.min(...gaps(agent.renewals))).toBeGreaterThanOrEqual(300_000);
    expect(Math.max(...gaps(agent.renewals))).toBeLessThanOrEqual(360_000);
  });

  test('a gateway that is away: asked about once a minute, never renewed blindly', async () => {
    const time = new VirtualTime(START_MS);
    const agent = startAgent(time, 'a');
    agent.state.instead = { kind: 'undecided', reason: 'ECONNREFUSED', retryAfterMs: null };
    await time.pass(HOUR_MS);
    expect(agent.checks.length).toBeGreaterThan(59);
    expect(agent.checks.length).toBeLessThan(125);
    expect(agent.renewals).toEqual([]);
  });

  test.each([
    [
      'after a renewal',
      { renewal: { kind: 'check_failed', reason: 'HTTP 401 certificate_unknown' }, isIssuerCurrent: false },
    ],
    ['staged by another command', { adopted: { kind: 'check_failed', reason: 'HTTP 401 certificate_unknown' } }],
  ] as const)('an identity that the gateway does not take, %s: the loop ends and says why', async (_, change) => {
    const time = new VirtualTime(START_MS);
    const agent = startAgent(time, 'a');
    Object.assign(agent.state, change);
    await time.pass(MINUTE_MS);
    expect(await agent.ended).toEqual({ kind: 'check_failed', reason: 'HTTP 401 certificate_unknown' });
  });

  test('a disk that is full: logged, tried again', async () => {
    const time = new VirtualTime(START_MS);
    const agent = startAgent(time, 'a');
    const connection = {
      client: { askIdentity: () => Promise.reject(new Error('ENOSPC: no space left on device')) },
      adoptStaged: async (): Promise<SwapOutcome> => ({ kind: 'unchanged' }),
      renew: async (): Promise<Renewal> => ({ kind: 'not_due' }),
    };
    agent.stop();
    const { log, lines } = capturedLog();
    const stop = new AbortController();
    const ended = runRenewalLoop({ connection, time, log, checkEveryMs: CHECK_EVERY_MS }, stop.signal);
    await time.pass(5 * MINUTE_MS);
    stop.abort();
    expect(await ended).toEqual({ kind: 'stopped' });
    expect(lines.length).toBeGreaterThanOrEqual(4);
    expect(lines[0]).toMatchObject({
      msg: 'renewal check failed, trying again',
      reason: expect.stringContaining('ENOSPC'),
    });
  });
});

describe("a host's wrong clock", () => {
  test.each([
    [-60_000, '60 s behind'],
    [600_000, '600 s ahead of'],
    [-600_000, '600 s behind'],
  ])(
    '%i ms off: named once with its size, and the certificate is renewed at its point all the same',
    async (hostAheadMs, by) => {
      const time = new VirtualTime(START_MS);
      const agent = startAgent(time, 'a', { hostAheadMs });
      const point = renewalPointMs(agent.window());
      await time.pass(22 * HOUR_MS);
      const [named, ...rest] = agent.lines;
      expect(named).toMatchObject({ level: 'warn', msg: `this host's clock is ${by} the gateway's` });
      expect(Math.abs(Number(named?.['clock_skew_ms']) - hostAheadMs)).toBeLessThanOrEqual(500);
      expect(rest.map(({ msg }) => msg)).toEqual(['certificate renewed']);
      expect((agent.renewals[0] ?? 0) - point).toBeLessThan(1_500);
    },
  );

  test('29 s off: not named', async () => {
    const time = new VirtualTime(START_MS);
    const agent = startAgent(time, 'a', { hostAheadMs: 29_000 });
    await time.pass(HOUR_MS);
    expect(agent.lines).toEqual([]);
  });

  test('wrong, worse, right again: each change is named', async () => {
    const time = new VirtualTime(START_MS);
    const circumstances = { hostAheadMs: 60_000 };
    const agent = startAgent(time, 'a', circumstances);
    for (const aheadMs of [60_000, 75_000, 600_000, 0, 0]) {
      circumstances.hostAheadMs = aheadMs;
      await time.pass(HOUR_MS);
    }
    expect(
      agent.lines.map(({ msg, clock_skew_ms: skewMs }) => [msg, Math.round(Number(skewMs) / 1_000) * 1_000]),
    ).toEqual([
      ["this host's clock is 60 s ahead of the gateway's", 60_000],
      ["this host's clock is 600 s ahead of the gateway's", 600_000],
      ["this host's clock agrees with the gateway's again", 0],
    ]);
  });
});

test('500 agents enrolled in one minute: the next day they renew over more than a fifth of the window, peak at most 5 x the mean', async () => {
  const time = new VirtualTime(START_MS);
  const agents: ReturnType<typeof startAgent>[] = [];
  for (let index = 0; index < 500; index++) {
    agents.push(startAgent(time, `agent ${index}`));
    await time.pass(MINUTE_MS / 500);
  }
  await time.pass(DAY_MS - MINUTE_MS);
  const renewals = agents.flatMap((agent) => agent.renewals).sort((a, b) => a - b);
  expect(agents.every((agent) => agent.renewals.length === 1)).toBe(true);
  const [first = 0, last = 0] = [renewals[0], renewals.at(-1)];
  const spreadMs = last - first;
  expect(spreadMs).toBeGreaterThanOrEqual(DAY_MS / 3 / 5);

  const bins = Array.from({ length: Math.ceil((spreadMs + 1) / (10 * MINUTE_MS)) }, () => 0);
  for (const at of renewals) {
    const bin = Math.floor((at - first) / (10 * MINUTE_MS));
    bins[bin] = (bins[bin] ?? 0) + 1;
  }
  const mean = renewals.length / bins.length;
  expect(Math.max(...bins)).toBeLessThanOrEqual(5 * mean);
  // And nobody comes late: a fifth of the life is left when the last one has renewed, less the minute of the enrolment.
  expect(last - START_MS).toBeLessThan(DAY_MS * (1 - (1 / 3) * 0.4) + MINUTE_MS + 1_500);
});
