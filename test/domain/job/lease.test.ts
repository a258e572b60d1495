import { describe, expect, test } from 'vitest';
import { leaseJobCommand } from '../../../src/commands/job.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import { type LeaseJob, MAX_REISSUES } from '../../../src/domain/job/lease.ts';
import { MOST_HELD_JOBS } from '../../../src/domain/node/limits.ts';
import {
  admitted,
  CERTIFICATE_LIFETIME_MS,
  digest,
  enrolled,
  FINGERPRINT,
  forOtherNode,
  JOB,
  LATER_JOB,
  MINUTE,
  make,
  OTHER_NODE,
  OTHER_REQUEST,
  OTHER_TOKEN,
  provisioned,
  REQUEST,
  SECOND_FINGERPRINT,
  START,
  sample,
  TOKEN,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const lease: LeaseJob = {
  fingerprint: FINGERPRINT,
  request_id: REQUEST,
  kinds: ['diagnose_host'],
  token_sha256: TOKEN,
  lease_ms: MINUTE,
};
const again: LeaseJob = { ...lease, token_sha256: OTHER_TOKEN };
const next: LeaseJob = { ...again, request_id: OTHER_REQUEST };
const nothingWaits = { job_id: null };

const { job_queued: queued, job_leased: leased } = sample;
const forPool = make('job_queued', { job_id: LATER_JOB, node_id: null, pool: 'application' });

describe('an agent asks for work', () => {
  test('a job waits for its node: job_leased, for the time that was asked', async () =>
    expect(await given(...enrolled, queued).when(leaseJobCommand, lease)).toEqual([leased]));

  test('what it is told: the job, its payload digest, attempt and end, never the token', async () =>
    expect(await given(...enrolled, queued).reply(leaseJobCommand, lease)).toEqual({
      job_id: JOB,
      kind: 'diagnose_host',
      payload_sha256: queued.data.payload_sha256,
      attempt: 1,
      lease_expires_at: START + MINUTE,
    }));

  test('the lease ends by the clock of the database, not of the log', async () =>
    expect(
      await given(...enrolled, queued)
        .recordingAt(START + 5_000)
        .when(leaseJobCommand, lease),
    ).toEqual([leased]));

  test('nothing waits: no event, told so', async () => {
    expect(await given(...admitted).when(leaseJobCommand, lease)).toEqual([]);
    expect(await given(...admitted).reply(leaseJobCommand, lease)).toEqual(nothingWaits);
  });

  test('two jobs wait for its node: the older one', async () =>
    expect(
      await given(...enrolled, make('job_queued', { job_id: LATER_JOB }), queued).when(leaseJobCommand, lease),
    ).toEqual([make('job_leased', { job_id: LATER_JOB })]));

  test('an older one waits for its pool: its own first', async () =>
    expect(await given(...admitted, forPool, queued).when(leaseJobCommand, lease)).toEqual([leased]));

  test('one waits for its pool, admitted: job_leased', async () =>
    expect(await given(...admitted, forPool).when(leaseJobCommand, lease)).toEqual([
      make('job_leased', { job_id: LATER_JOB }),
    ]));

  test('one waits for its pool, and it holds as many as a node may: nothing, until one of them is done', async () => {
    const held = Array.from({ length: MOST_HELD_JOBS }, (_, i) => {
      const job_id = `20000000-0000-4000-8000-${String(i + 100).padStart(12, '0')}`;
      const request_id = `21000000-0000-4000-8000-${String(i + 100).padStart(12, '0')}`;
      return [
        make('job_queued', { job_id, node_id: null, pool: 'application' }),
        make('job_leased', { job_id, request_id }),
      ];
    });
    const full = [...admitted, ...held.flat(), forPool];
    expect(await given(...full).when(leaseJobCommand, lease)).toEqual([]);
    const done = make('job_completed', { job_id: held[0]?.[0]?.data.job_id ?? '' });
    expect(await given(...full, done).when(leaseJobCommand, lease)).toEqual([
      make('job_leased', { job_id: LATER_JOB }),
    ]);
    expect(await given(...full, queued).when(leaseJobCommand, lease)).toEqual([leased]);
  });

  test('one waits for its pool, not admitted: nothing', async () =>
    expect(await given(...enrolled, forPool).reply(leaseJobCommand, lease)).toEqual(nothingWaits));

  test('one waits for another pool: nothing', async () =>
    expect(
      await given(...admitted, make('job_queued', { node_id: null, pool: 'build' })).reply(leaseJobCommand, lease),
    ).toEqual(nothingWaits));

  test('one waits for another node: nothing', async () =>
    expect(await given(...admitted, ...forOtherNode([...enrolled, queued])).reply(leaseJobCommand, lease)).toEqual(
      nothingWaits,
    ));

  test('one of a kind that the agent does not know: nothing', async () =>
    expect(await given(...admitted, queued).reply(leaseJobCommand, { ...lease, kinds: ['deploy'] })).toEqual(
      nothingWaits,
    ));

  test('one of an unknown kind waits before one of a known kind: the known one', async () =>
    expect(
      await given(...enrolled, make('job_queued', { job_id: LATER_JOB, kind: 'deploy' }), queued).when(
        leaseJobCommand,
        lease,
      ),
    ).toEqual([leased]));

  test('another request while its first job runs: the next job', async () =>
    expect(
      await given(...enrolled, queued, leased, make('job_queued', { job_id: LATER_JOB })).when(leaseJobCommand, next),
    ).toEqual([make('job_leased', { job_id: LATER_JOB, request_id: OTHER_REQUEST, token_sha256: OTHER_TOKEN })]));
});

describe('the answer was lost and the same request comes again', () => {
  const waiting = [...enrolled, queued, leased, make('job_queued', { job_id: LATER_JOB })];
  const reissued = make('job_leased', {
    token_sha256: OTHER_TOKEN,
    expires_at: START + 10_000 + MINUTE,
    reissued: true,
  });

  test('still leased: the same job under the new token, the same attempt, a whole new time', async () =>
    expect(
      await given(...waiting)
        .after(10_000)
        .when(leaseJobCommand, again),
    ).toEqual([reissued]));

  test('it says what the first answer said', async () =>
    expect(await given(...waiting).reply(leaseJobCommand, again)).toEqual({
      job_id: JOB,
      kind: 'diagnose_host',
      payload_sha256: queued.data.payload_sha256,
      attempt: 1,
      lease_expires_at: START + MINUTE,
    }));

  test('completed meanwhile: nothing, not another job', async () =>
    expect(await given(...waiting, sample.job_completed).reply(leaseJobCommand, again)).toEqual(nothingWaits));

  test('expired meanwhile: the same job, as a new attempt', async () =>
    expect(await given(...waiting, sample.job_lease_expired).when(leaseJobCommand, again)).toEqual([
      make('job_leased', { token_sha256: OTHER_TOKEN, attempt: 2 }),
    ]));

  test('re-issued as often as a lease is: nothing, no event', async () => {
    const history = given(...waiting);
    for (let i = 0; i < MAX_REISSUES; i += 1) {
      expect(await history.when(leaseJobCommand, again)).toMatchObject([{ data: { reissued: true } }]);
    }
    expect(await history.reply(leaseJobCommand, again)).toEqual(nothingWaits);
    expect(await history.when(leaseJobCommand, again)).toEqual([]);
  });

  test("a stranger's request id: nothing", async () =>
    expect(
      await given(...waiting, ...forOtherNode(admitted)).reply(leaseJobCommand, {
        ...again,
        fingerprint: SECOND_FINGERPRINT,
      }),
    ).toEqual(nothingWaits));
});

describe('the payload of a job is gone', () => {
  const later = make('job_queued', { job_id: LATER_JOB });
  const lost = { reason: 'payload_missing', result_sha256: null } as const;

  test('it is the next: job_failed, and told to ask again', async () => {
    const history = () => given(...enrolled, queued, later).withoutPayload(JOB);
    expect(await history().when(leaseJobCommand, lease)).toEqual([make('job_failed', { ...lost, attempt: 0 })]);
    expect(await history().reply(leaseJobCommand, lease)).toEqual({ job_id: null, failed_job_id: JOB });
  });

  test('asked again: the job behind it', async () => {
    const history = given(...enrolled, queued, later).withoutPayload(JOB);
    await history.when(leaseJobCommand, lease);
    expect(await history.when(leaseJobCommand, lease)).toEqual([make('job_leased', { job_id: LATER_JOB })]);
  });

  test('another body is in its place: job_failed', async () =>
    expect(
      await given(...enrolled, queued)
        .payload({ job_id: JOB, sha256: digest('b0d9') })
        .when(leaseJobCommand, lease),
    ).toEqual([make('job_failed', { ...lost, attempt: 0 })]));

  test('it waits for the pool: job_failed', async () =>
    expect(
      await given(...admitted, forPool)
        .withoutPayload(LATER_JOB)
        .when(leaseJobCommand, lease),
    ).toEqual([make('job_failed', { ...lost, job_id: LATER_JOB, attempt: 0 })]));

  test('it was leased, and the same request comes again: job_failed, not another lease', async () =>
    expect(
      await given(...enrolled, queued, leased)
        .withoutPayload(JOB)
        .when(leaseJobCommand, again),
    ).toEqual([make('job_failed', lost)]));
});

describe('an agent that may not have work', () => {
  test.each<[string, readonly FleetEvent[], number, ReturnType<typeof refusal>]>([
    ['certificate unknown', provisioned, 0, refusal('certificate_unknown')],
    ['certificate revoked', [...enrolled, sample.certificates_revoked], 0, refusal('certificate_unknown')],
    ['certificate expired', enrolled, CERTIFICATE_LIFETIME_MS, refusal('certificate_expired')],
  ])('%s: refused, whatever waits', async (_, history, afterMs, refused) =>
    expect(
      await given(...history, queued)
        .after(afterMs)
        .when(leaseJobCommand, lease),
    ).toEqual(refused),
  );

  test('certificate revoked: refused for a repeated request too', async () =>
    expect(await given(...enrolled, queued, leased, sample.certificates_revoked).when(leaseJobCommand, again)).toEqual(
      refusal('certificate_unknown'),
    ));

  test('certificate issued, node not enrolled: refused, says its status', async () =>
    expect(
      await given(...provisioned, sample.certificate_authorized, sample.certificate_issued).when(
        leaseJobCommand,
        lease,
      ),
    ).toEqual(refusal('node_not_active', { status: 'provisioning' })));
});

test('a retried job: before those that were queued after it', async () =>
  expect(
    await given(
      ...admitted,
      make('job_queued', { node_id: null, pool: 'application' }),
      make('job_queued', { job_id: LATER_JOB, node_id: null, pool: 'application' }),
      make('job_leased', { node_id: OTHER_NODE, request_id: OTHER_REQUEST }),
      make('job_lease_expired', { node_id: OTHER_NODE }),
    ).when(leaseJobCommand, lease),
  ).toEqual([make('job_leased', { attempt: 2 })]));
