import { describe, expect, test } from 'vitest';
import { completeJobCommand, leaseJobCommand } from '../../../src/commands/job.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import { type CompleteJob, MAX_FREE_RETURNS } from '../../../src/domain/job/complete.ts';
import {
  admitted,
  CERTIFICATE_LIFETIME_MS,
  digest,
  FINGERPRINT,
  forOtherNode,
  JOB,
  MINUTE,
  make,
  NODE,
  OTHER_NODE,
  OTHER_REQUEST,
  OTHER_TOKEN,
  REQUEST,
  SECOND_FINGERPRINT,
  START,
  sample,
  TOKEN,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const succeed: CompleteJob = {
  fingerprint: FINGERPRINT,
  job_id: JOB,
  token_sha256: TOKEN,
  outcome: 'succeeded',
  result: '{"checks":[]}',
  result_sha256: digest('b0d2'),
  report: { kind: 'other' },
};
const fail: CompleteJob = { ...succeed, outcome: 'failed' };
const handBack: CompleteJob = { ...succeed, outcome: 'returned', result: 'null', result_sha256: digest('b0d3') };

const running = [...admitted, sample.job_queued, sample.job_leased];
const conflict = refusal('lease_conflict');

describe('a job ends', () => {
  test('succeeded: job_completed, with the digest of its result', async () =>
    expect(await given(...running).when(completeJobCommand, succeed)).toEqual([sample.job_completed]));

  test('failed: job_failed, as the agent reported', async () =>
    expect(await given(...running).when(completeJobCommand, fail)).toEqual([sample.job_failed]));

  test('handed back: job_returned', async () =>
    expect(await given(...running).when(completeJobCommand, handBack)).toEqual([sample.job_returned]));

  test.each([succeed, fail])('$outcome: the result is a body outside the log', async (command) =>
    expect(await given(...running).bodies(completeJobCommand, command)).toEqual([
      { jobId: JOB, role: 'result', sha256: digest('b0d2'), text: '{"checks":[]}' },
    ]),
  );

  test('handed back: leaves no body', async () =>
    expect(await given(...running).bodies(completeJobCommand, handBack)).toEqual([]));

  test.each([succeed, fail, handBack])('$outcome, repeated: no new event, no body', async (command) => {
    const history = given(...running);
    await history.when(completeJobCommand, command);
    expect(await history.when(completeJobCommand, command)).toEqual([]);
    expect(await history.bodies(completeJobCommand, command)).toEqual([]);
  });

  test.each<[string, CompleteJob, CompleteJob]>([
    ['succeeded, then failed', succeed, fail],
    ['failed, then succeeded', fail, succeed],
    ['succeeded, then with another result', succeed, { ...succeed, result_sha256: digest('b0d9') }],
    ['succeeded, then handed back', succeed, handBack],
    ['handed back, then succeeded', handBack, succeed],
  ])('%s: refused', async (_, first, second) => {
    const history = given(...running);
    await history.when(completeJobCommand, first);
    expect(await history.when(completeJobCommand, second)).toEqual(conflict);
  });
});

describe('fencing', () => {
  const expired = [...running, sample.job_lease_expired];
  const leasedAgain = make('job_leased', { attempt: 2, request_id: OTHER_REQUEST, token_sha256: OTHER_TOKEN });

  test('after the deadline, before anybody decided the expiry: counts', async () =>
    expect(
      await given(...running)
        .after(MINUTE + 1)
        .when(completeJobCommand, succeed),
    ).toEqual([sample.job_completed]));

  test('the guard was lost with the telemetry: counts', async () =>
    expect(
      await given(...running)
        .withoutLease(JOB)
        .when(completeJobCommand, succeed),
    ).toEqual([sample.job_completed]));

  test.each<[string, readonly FleetEvent[]]>([
    ['expired', expired],
    ['expired and leased again by the same node', [...expired, leasedAgain]],
    ['expired, leased again and completed', [...expired, leasedAgain, make('job_completed', { attempt: 2 })]],
    ['failed for good', [...expired, make('job_failed', { reason: 'attempts_exhausted', result_sha256: null })]],
    ['re-issued under another token', [...running, make('job_leased', { token_sha256: OTHER_TOKEN, reissued: true })]],
    [
      'handed back and leased again',
      [...running, sample.job_returned, make('job_leased', { token_sha256: OTHER_TOKEN })],
    ],
  ])('%s: the old token is refused, whatever its outcome', async (_, history) => {
    for (const command of [succeed, fail, handBack]) {
      expect(await given(...history).when(completeJobCommand, command)).toEqual(conflict);
    }
  });

  test('re-issued: the new token counts', async () =>
    expect(
      await given(...running, make('job_leased', { token_sha256: OTHER_TOKEN, reissued: true })).when(
        completeJobCommand,
        { ...succeed, token_sha256: OTHER_TOKEN },
      ),
    ).toEqual([sample.job_completed]));

  test('the guard has another token than the log: refused', async () => {
    const guard = { job_id: JOB, node_id: NODE, token_sha256: OTHER_TOKEN, expires_at: START + MINUTE };
    expect(
      await given(...running)
        .heartbeat(guard)
        .when(completeJobCommand, succeed),
    ).toEqual(conflict);
  });

  test('the right token from another node: refused', async () =>
    expect(
      await given(...running, ...forOtherNode(admitted)).when(completeJobCommand, {
        ...succeed,
        fingerprint: SECOND_FINGERPRINT,
      }),
    ).toEqual(conflict));

  test('completed, then repeated from another node: refused', async () =>
    expect(
      await given(...running, sample.job_completed, ...forOtherNode(admitted)).when(completeJobCommand, {
        ...succeed,
        fingerprint: SECOND_FINGERPRINT,
      }),
    ).toEqual(conflict));

  test('unknown job: refused', async () =>
    expect(await given(...admitted).when(completeJobCommand, succeed)).toEqual(conflict));

  test('never leased: refused', async () =>
    expect(await given(...admitted, sample.job_queued).when(completeJobCommand, succeed)).toEqual(conflict));
});

describe('an agent that may not speak', () => {
  test('certificate unknown: refused', async () =>
    expect(await given(...running).when(completeJobCommand, { ...succeed, fingerprint: digest('f9') })).toEqual(
      refusal('certificate_unknown'),
    ));

  test('certificate revoked while the job ran: refused', async () =>
    expect(await given(...running, sample.certificates_revoked).when(completeJobCommand, succeed)).toEqual(
      refusal('certificate_unknown'),
    ));

  test('certificate expired while the job ran: refused', async () =>
    expect(
      await given(...running)
        .after(CERTIFICATE_LIFETIME_MS)
        .when(completeJobCommand, succeed),
    ).toEqual(refusal('certificate_expired')));
});

describe('a job that was handed back', () => {
  const returned = [...running, sample.job_returned];

  test('it is leased again: the attempt was not used up', async () =>
    expect(
      await given(...returned).when(leaseJobCommand, {
        fingerprint: FINGERPRINT,
        request_id: OTHER_REQUEST,
        kinds: ['diagnose_host'],
        token_sha256: OTHER_TOKEN,
        lease_ms: MINUTE,
      }),
    ).toEqual([make('job_leased', { request_id: OTHER_REQUEST, token_sha256: OTHER_TOKEN, attempt: 1 })]));

  test('the request that was given it comes again: a new lease, not a re-issued one', async () =>
    expect(
      await given(...returned).when(leaseJobCommand, {
        fingerprint: FINGERPRINT,
        request_id: REQUEST,
        kinds: ['diagnose_host'],
        token_sha256: OTHER_TOKEN,
        lease_ms: MINUTE,
      }),
    ).toEqual([make('job_leased', { token_sha256: OTHER_TOKEN })]));

  test('the other node of a pool may take it', async () => {
    const poolJob = make('job_queued', { node_id: null, pool: 'application' });
    expect(
      await given(...admitted, ...forOtherNode(admitted), poolJob, sample.job_leased, sample.job_returned).when(
        leaseJobCommand,
        {
          fingerprint: SECOND_FINGERPRINT,
          request_id: OTHER_REQUEST,
          kinds: ['diagnose_host'],
          token_sha256: OTHER_TOKEN,
          lease_ms: MINUTE,
        },
      ),
    ).toEqual([make('job_leased', { node_id: OTHER_NODE, request_id: OTHER_REQUEST, token_sha256: OTHER_TOKEN })]);
  });
});

describe('a job that is handed back again and again', () => {
  const backAndForth = (times: number) => Array.from({ length: times }, () => [sample.job_returned, sample.job_leased]);
  const tooOften = (maxAttempts: number) =>
    given(
      ...admitted,
      make('job_queued', { max_attempts: maxAttempts }),
      sample.job_leased,
      ...backAndForth(MAX_FREE_RETURNS).flat(),
    );
  const spent = make('job_returned', { attempt_spent: true });

  test('the last time that is free: costs no attempt', async () =>
    expect(
      await given(...running, ...backAndForth(MAX_FREE_RETURNS - 1).flat()).when(completeJobCommand, handBack),
    ).toEqual([sample.job_returned]));

  test('once more: the attempt is spent', async () =>
    expect(await tooOften(3).when(completeJobCommand, handBack)).toEqual([spent]));

  test('once more, on its last attempt: failed', async () =>
    expect(await tooOften(1).when(completeJobCommand, handBack)).toEqual([
      spent,
      make('job_failed', { reason: 'attempts_exhausted', result_sha256: null }),
    ]));

  test('failed so, and repeated: no new event', async () => {
    const history = tooOften(1);
    await history.when(completeJobCommand, handBack);
    expect(await history.when(completeJobCommand, handBack)).toEqual([]);
    expect(await history.when(completeJobCommand, succeed)).toEqual(conflict);
  });
});
