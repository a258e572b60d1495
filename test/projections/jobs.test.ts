import { describe, expect, test } from 'vitest';
import { digest, make, NODE, OTHER_REQUEST, OTHER_TOKEN, REQUEST, START, sample, TOKEN } from '../support/events.ts';
import { fold } from './fold.ts';

const { job_queued, job_leased, job_lease_expired, job_returned, job_completed, job_failed } = sample;
const queued = {
  ...job_queued.data,
  status: 'queued',
  result_sha256: null,
  attempt: 0,
  free_returns: 0,
  reissues: 0,
  leased_to: null,
  lease_request_id: null,
  lease_token_sha256: null,
  failure_reason: null,
  queued_position: 1,
  queued_at: START,
  leased_at: null,
  finished_at: null,
};
const leased = {
  ...queued,
  status: 'leased',
  attempt: 1,
  leased_to: NODE,
  lease_request_id: REQUEST,
  lease_token_sha256: TOKEN,
  leased_at: START + 1_000,
};

describe('jobs', () => {
  test('queued: at the position of its event', () => expect(fold('jobs', job_queued)).toEqual([queued]));

  test('leased: by whom, for which request, under which token', () =>
    expect(fold('jobs', job_queued, job_leased)).toEqual([leased]));

  test('re-issued: another token, since the first lease', () =>
    expect(
      fold('jobs', job_queued, job_leased, make('job_leased', { token_sha256: OTHER_TOKEN, reissued: true })),
    ).toEqual([{ ...leased, lease_token_sha256: OTHER_TOKEN, reissues: 1 }]));

  test('expired: queued at its old place, the attempt counts, the token is forgotten', () =>
    expect(fold('jobs', job_queued, job_leased, job_lease_expired)).toEqual([{ ...queued, attempt: 1 }]));

  test('leased once more: another attempt', () => {
    const again = { attempt: 2, request_id: OTHER_REQUEST, token_sha256: OTHER_TOKEN };
    expect(fold('jobs', job_queued, job_leased, job_lease_expired, make('job_leased', again))).toEqual([
      {
        ...leased,
        attempt: 2,
        lease_request_id: OTHER_REQUEST,
        lease_token_sha256: OTHER_TOKEN,
        leased_at: START + 3_000,
      },
    ]);
  });

  test('handed back: queued, the attempt does not count, the token is still known', () =>
    expect(fold('jobs', job_queued, job_leased, job_returned)).toEqual([
      { ...queued, lease_token_sha256: TOKEN, free_returns: 1 },
    ]));

  test('handed back too often: queued, the attempt counts, no more free returns are used', () =>
    expect(fold('jobs', job_queued, job_leased, make('job_returned', { attempt_spent: true }))).toEqual([
      { ...queued, attempt: 1, lease_token_sha256: TOKEN },
    ]));

  test('re-issued, expired, leased once more: re-issues are counted anew for each attempt', () => {
    const reissued = make('job_leased', { reissued: true });
    const again = make('job_leased', { attempt: 2 });
    expect(fold('jobs', job_queued, job_leased, reissued, job_lease_expired, again)).toMatchObject([{ reissues: 0 }]);
  });

  test('completed: result and end, and still who did it', () =>
    expect(fold('jobs', job_queued, job_leased, job_completed)).toEqual([
      { ...leased, status: 'completed', result_sha256: digest('b0d2'), finished_at: START + 2_000 },
    ]));

  test('failed as reported: result, reason and end', () =>
    expect(fold('jobs', job_queued, job_leased, job_failed)).toEqual([
      {
        ...leased,
        status: 'failed',
        result_sha256: digest('b0d2'),
        failure_reason: 'agent_reported',
        finished_at: START + 2_000,
      },
    ]));

  test('attempts exhausted: failed, held by nobody', () => {
    const exhausted = make('job_failed', { reason: 'attempts_exhausted', result_sha256: null });
    expect(fold('jobs', job_queued, job_leased, job_lease_expired, exhausted)).toEqual([
      { ...queued, status: 'failed', attempt: 1, failure_reason: 'attempts_exhausted', finished_at: START + 3_000 },
    ]);
  });
});

describe('job_leases', () => {
  const guard = { job_id: job_queued.data.job_id, node_id: NODE, token_sha256: TOKEN, expires_at: START + 60_000 };

  test('queued: none', () => expect(fold('job_leases', job_queued)).toEqual([]));

  test('leased: a guard until it ends', () => expect(fold('job_leases', job_leased)).toEqual([guard]));

  test('re-issued: the guard has the new token and end', () =>
    expect(
      fold('job_leases', job_leased, make('job_leased', { token_sha256: OTHER_TOKEN, expires_at: START + 90_000 })),
    ).toEqual([{ ...guard, token_sha256: OTHER_TOKEN, expires_at: START + 90_000 }]));

  test.each([job_lease_expired, job_returned, job_completed, job_failed])('$type: closes the guard', (event) =>
    expect(fold('job_leases', job_leased, event)).toEqual([]),
  );

  test('completed although the guard was lost: nothing to close', () =>
    expect(fold('job_leases', job_completed)).toEqual([]));
});

describe('job_payloads', () => {
  test('queued: its payload is stored in the same batch', () =>
    expect(fold('job_payloads', job_queued)).toEqual([
      { job_id: job_queued.data.job_id, sha256: job_queued.data.payload_sha256 },
    ]));
});
