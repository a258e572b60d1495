import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Lease } from '../../agent/gateway-answers.ts';
import { type JobHandler, runLeasedJob } from '../../agent/job-runner.ts';
import { systemTime } from '../../agent/time.ts';
import type { CompleteRequest } from '../../src/protocol/jobs.ts';
import { capturedLog } from './support/captured-log.ts';
import { type Connected, connect } from './support/client.ts';
import { heartbeatFor, problem, type Reply } from './support/stub-gateway.ts';

const REPORT = { checks: [], duration_ms: 7 };
const TOKEN = 'token-of-20000000-0000-4000-8000-000000000001-0123456789';

let connected: Connected;
let completions: CompleteRequest[];

beforeAll(async () => {
  connected = await connect();
});
afterAll(() => connected[Symbol.asyncDispose]());

beforeEach(() => {
  completions = [];
  connected.gateway.heartbeat = () => heartbeatFor(60_000);
  completeWith();
});

/** Answers completions with these replies, then 200; writes each one down. */
function completeWith(...replies: readonly Reply[]): void {
  connected.gateway.complete = ({ body }) => {
    completions.push(body);
    return replies[completions.length - 1] ?? { status: 200, body: {} };
  };
}

interface Circumstances {
  readonly lease?: Partial<Lease>;
  readonly leaseMs?: number;
  readonly stopGraceMs?: number;
  readonly stopping?: AbortSignal;
  readonly abandoned?: AbortSignal;
}

/** Runs 20000000-0000-4000-8000-000000000001 with this work against the real client, and answers what was logged. */
async function runJob(work: JobHandler<'diagnose_host'>, circumstances: Circumstances = {}) {
  const { lease = {}, leaseMs = 60_000, stopGraceMs = 60_000 } = circumstances;
  const { log, lines } = capturedLog();
  const whole = {
    id: '20000000-0000-4000-8000-000000000001',
    kind: 'diagnose_host',
    payload: {},
    token: TOKEN,
    endsAtMs: systemTime.nowMs() + leaseMs,
  };
  await runLeasedJob(
    { ...whole, ...lease },
    {
      gateway: () => connected.client,
      handlers: { diagnose_host: work },
      time: systemTime,
      log,
      stopGraceMs,
      abandoned: circumstances.abandoned ?? new AbortController().signal,
    },
    circumstances.stopping ?? new AbortController().signal,
  );
  return lines;
}

/** Work that never ends by itself. */
const endless: JobHandler<'diagnose_host'> = (_, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('told to end')), { once: true });
  });

describe('runLeasedJob', () => {
  test('work that succeeds: handed in once with the token and the result', async () => {
    await runJob(async () => REPORT);
    expect(completions).toEqual([{ lease_token: TOKEN, outcome: 'succeeded', result: REPORT }]);
  });

  test('work that throws: failed, work_failed, its message without control characters', async () => {
    await runJob(() => Promise.reject(new Error('disk\u0000on\nfire')));
    expect(completions).toEqual([
      { lease_token: TOKEN, outcome: 'failed', result: { code: 'work_failed', detail: 'disk on fire' } },
    ]);
  });

  test('a payload that is not the kind’s: failed, payload_invalid, the work never starts', async () => {
    let started = false;
    const work = async () => {
      started = true;
      return REPORT;
    };
    await runJob(work, { lease: { payload: { checks: ['teeth'] } } });
    expect(completions[0]).toMatchObject({ outcome: 'failed', result: { code: 'payload_invalid' } });
    expect(started).toBe(false);
  });

  test.each(['mine_coins', '__proto__', 'constructor'])('kind %s: failed, kind_unsupported', async (kind) => {
    await runJob(async () => REPORT, { lease: { kind } });
    expect(completions[0]).toMatchObject({ outcome: 'failed', result: { code: 'kind_unsupported' } });
  });

  test('a result that is not the kind’s: failed, work_failed', async () => {
    await runJob(async () => ({ ...REPORT, duration_ms: -1 }));
    expect(completions[0]).toMatchObject({ outcome: 'failed', result: { code: 'work_failed' } });
  });

  test('a lease shorter than the work: heartbeats carry it over', async () => {
    let beats = 0;
    const thirdBeat = Promise.withResolvers<void>();
    connected.gateway.heartbeat = ({ body, jobId }) => {
      expect([body.lease_token, jobId]).toEqual([TOKEN, '20000000-0000-4000-8000-000000000001']);
      beats += 1;
      if (beats === 3) thirdBeat.resolve();
      return heartbeatFor(2_000);
    };
    await runJob(() => thirdBeat.promise.then(() => REPORT), { leaseMs: 600 });
    expect(completions).toHaveLength(1);
  });

  test.each([
    ['409 lease_conflict', problem(409, 'lease_conflict'), 'conflict'],
    ['404 not_found', problem(404, 'not_found'), 'conflict'],
    ['401 certificate_unknown', problem(401, 'certificate_unknown'), 'unauthenticated'],
  ])('heartbeat answered %s: the work ends, nothing is handed in', async (_, reply, why) => {
    connected.gateway.heartbeat = () => reply;
    const lines = await runJob(endless, { leaseMs: 600 });
    expect(lines.at(-1)).toMatchObject({ msg: 'lease lost, work ended', why });
    expect(completions).toEqual([]);
  });

  test.each(['hold', 'drop', problem(503, 'unavailable')] as const)(
    'heartbeats come to nothing (%j): the work ends with the lease',
    async (reply) => {
      connected.gateway.heartbeat = () => reply;
      const startedMs = systemTime.nowMs();
      const lines = await runJob(endless, { leaseMs: 900 });
      expect(lines.at(-1)).toMatchObject({ msg: 'lease lost, work ended', why: 'expired' });
      expect(systemTime.nowMs() - startedMs).toBeGreaterThanOrEqual(890);
      expect(completions).toEqual([]);
    },
  );

  test('a heartbeat lost on the way, the next one answered: the work goes on', async () => {
    let beats = 0;
    const secondBeat = Promise.withResolvers<void>();
    connected.gateway.heartbeat = () => {
      beats += 1;
      if (beats === 1) return 'drop';
      secondBeat.resolve();
      return heartbeatFor(60_000);
    };
    await runJob(() => secondBeat.promise.then(() => REPORT), { leaseMs: 3_000 });
    expect(completions).toHaveLength(1);
  });

  test('a completion answered 503 and lost once: repeated word for word until it is taken', async () => {
    completeWith(problem(503, 'unavailable'), 'drop');
    const lines = await runJob(async () => REPORT);
    expect(completions).toHaveLength(3);
    expect(new Set(completions.map((completion) => JSON.stringify(completion))).size).toBe(1);
    expect(lines.at(-1)).toMatchObject({ msg: 'job ended', delivery: 'accepted' });
  });

  test.each([
    [409, 'lease_conflict', 'conflict'],
    [400, 'invalid_request', 'rejected'],
  ])('a completion answered %i: final', async (status, code, delivery) => {
    completeWith(problem(status, code));
    const lines = await runJob(async () => REPORT);
    expect(completions).toHaveLength(1);
    expect(lines.at(-1)).toMatchObject({ msg: 'job ended', delivery });
  });

  test('told to stop, work that ends within the grace period: handed in as succeeded', async () => {
    const stop = new AbortController();
    const work = async () => {
      stop.abort();
      await systemTime.pause(50);
      return REPORT;
    };
    await runJob(work, { stopping: stop.signal });
    expect(completions[0]).toMatchObject({ outcome: 'succeeded' });
  });

  test('told to stop, work that takes longer: ended and handed back as agent_stopping', async () => {
    await runJob(endless, { stopping: AbortSignal.abort(), stopGraceMs: 50 });
    expect(completions).toMatchObject([{ outcome: 'failed', result: { code: 'agent_stopping' } }]);
  });

  test('abandoned: the work ends at once, and the job is not handed back', async () => {
    const abandoned = new AbortController();
    const work: JobHandler<'diagnose_host'> = (payload, signal, lease) => {
      abandoned.abort();
      return endless(payload, signal, lease);
    };
    const lines = await runJob(work, { abandoned: abandoned.signal, stopping: abandoned.signal });
    expect(lines.at(-1)).toMatchObject({ msg: 'lease lost, work ended', why: 'abandoned' });
    expect(completions).toEqual([]);
  });

  test('told to stop, nobody takes the result: given up after a while', async () => {
    connected.gateway.complete = () => 'hold';
    const lines = await runJob(async () => REPORT, { stopping: AbortSignal.abort() });
    expect(lines.at(-1)).toMatchObject({ msg: 'job ended', delivery: 'given_up' });
  });

  test('the token is in no log line', async () => {
    completeWith(problem(503, 'unavailable'));
    expect(JSON.stringify(await runJob(async () => REPORT))).not.toContain(TOKEN);
  });
});
