import { describe, expect, test } from 'vitest';
import { expireLeaseCommand } from '../../../src/commands/job.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import { admitted, JOB, MINUTE, make, NODE, OTHER_TOKEN, START, sample, TOKEN } from '../../support/events.ts';
import { given } from '../../support/given.ts';

const expire = { job_id: JOB };
const leaseEnds = START + MINUTE;
const running = [...admitted, sample.job_queued, sample.job_leased];

/** The events of a job that expired `attempts` times. */
function expiredTimes(attempts: number): FleetEvent[] {
  return Array.from({ length: attempts }, (_, index) => [
    make('job_leased', { attempt: index + 1 }),
    make('job_lease_expired', { attempt: index + 1 }),
  ]).flat();
}

describe('a lease is looked at', () => {
  test('it ran out, attempts are left: job_lease_expired', async () =>
    expect(
      await given(...running)
        .at(leaseEnds)
        .when(expireLeaseCommand, expire),
    ).toEqual([sample.job_lease_expired]));

  test('1 ms before it runs out: no event', async () =>
    expect(
      await given(...running)
        .at(leaseEnds - 1)
        .when(expireLeaseCommand, expire),
    ).toEqual([]));

  test('it ran out by the log, not by the database: no event', async () =>
    expect(
      await given(...running)
        .at(leaseEnds - 1)
        .recordingAt(leaseEnds + MINUTE)
        .when(expireLeaseCommand, expire),
    ).toEqual([]));

  test('repeated: no new event', async () => {
    const history = given(...running).at(leaseEnds);
    await history.when(expireLeaseCommand, expire);
    expect(await history.when(expireLeaseCommand, expire)).toEqual([]);
  });

  test('a heartbeat extended it: no event until that time', async () => {
    const guard = { job_id: JOB, node_id: NODE, token_sha256: TOKEN, expires_at: leaseEnds + 5_000 };
    const history = given(...running)
      .heartbeat(guard)
      .at(leaseEnds + 4_999);
    expect(await history.when(expireLeaseCommand, expire)).toEqual([]);
    expect(await history.after(1).when(expireLeaseCommand, expire)).toEqual([sample.job_lease_expired]);
  });

  test('a re-issue began it anew: no event at its first end', async () =>
    expect(
      await given(...running)
        .and(make('job_leased', { token_sha256: OTHER_TOKEN, reissued: true, expires_at: leaseEnds + 5_000 }))
        .at(leaseEnds)
        .when(expireLeaseCommand, expire),
    ).toEqual([]));

  test('its guard was lost with the telemetry: no event', async () =>
    expect(
      await given(...running)
        .withoutLease(JOB)
        .at(leaseEnds + MINUTE)
        .when(expireLeaseCommand, expire),
    ).toEqual([]));

  test.each<[string, readonly FleetEvent[]]>([
    ['unknown', []],
    ['queued', [sample.job_queued]],
    ['completed', [...running, sample.job_completed]],
    ['failed', [...running, sample.job_failed]],
    ['handed back', [...running, sample.job_returned]],
  ])('the job is %s: no event', async (_, history) =>
    expect(
      await given(...history)
        .at(leaseEnds)
        .when(expireLeaseCommand, expire),
    ).toEqual([]),
  );
});

describe('attempts are bounded', () => {
  const waiting = [...admitted, sample.job_queued];

  test('the second of three runs out: back to the queue', async () =>
    expect(
      await given(...waiting, ...expiredTimes(1), make('job_leased', { attempt: 2 }))
        .at(leaseEnds)
        .when(expireLeaseCommand, expire),
    ).toEqual([make('job_lease_expired', { attempt: 2 })]));

  test('the last of three runs out: job_lease_expired and job_failed', async () =>
    expect(
      await given(...waiting, ...expiredTimes(2), make('job_leased', { attempt: 3 }))
        .at(leaseEnds)
        .when(expireLeaseCommand, expire),
    ).toEqual([
      make('job_lease_expired', { attempt: 3 }),
      make('job_failed', { attempt: 3, reason: 'attempts_exhausted', result_sha256: null }),
    ]));

  test('the only attempt runs out: failed', async () =>
    expect(
      await given(...admitted, make('job_queued', { max_attempts: 1 }), sample.job_leased)
        .at(leaseEnds)
        .when(expireLeaseCommand, expire),
    ).toEqual([sample.job_lease_expired, make('job_failed', { reason: 'attempts_exhausted', result_sha256: null })]));
});
