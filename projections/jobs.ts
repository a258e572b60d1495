import type { RecordedOf } from '../src/domain/event/recorded.ts';
import type { JobState } from '../src/domain/job/state.ts';
import { creates, defineProjection, updates, updatesEach } from './projection.ts';
import { bigint, defineTable, integer, text, timestamp } from './table.ts';

const table = defineTable<JobState>()({
  name: 'jobs',
  key: 'job_id',
  columns: {
    job_id: text,
    kind: text,
    status: text,
    node_id: text.orNull,
    pool: text.orNull,
    org_id: text.orNull,
    payload_sha256: text,
    result_sha256: text.orNull,
    max_attempts: integer,
    attempt: integer,
    free_returns: integer,
    reissues: integer,
    leased_to: text.orNull,
    lease_request_id: text.orNull,
    lease_token_sha256: text.orNull,
    failure_reason: text.orNull,
    queued_position: bigint,
    queued_at: timestamp,
    leased_at: timestamp.orNull,
    finished_at: timestamp.orNull,
  },
  indexes: [
    { name: 'jobs_queued_node', columns: ['node_id', 'queued_position'], where: `status = 'queued'` },
    { name: 'jobs_queued_pool', columns: ['pool', 'queued_position'], where: `status = 'queued'` },
    { name: 'jobs_lease_request', columns: ['lease_request_id'], where: 'lease_request_id IS NOT NULL' },
    { name: 'jobs_leased', columns: ['leased_to'], where: `status = 'leased'` },
    { name: 'jobs_open_node', columns: ['node_id'], where: `status IN ('queued', 'leased')` },
  ],
});

const endedLease = { leased_to: null, lease_request_id: null, leased_at: null } as const;

/** A job that nobody may do any more: its token proves nothing. */
function fence(row: JobState, at: number, reason: string): JobState {
  return { ...row, ...endedLease, lease_token_sha256: null, status: 'failed', failure_reason: reason, finished_at: at };
}

const fencedWith = (reason: string) =>
  updatesEach<JobState, RecordedOf<'node_lost'> | RecordedOf<'node_revoked'>>(
    ({ data }) => data.fenced_jobs.map(({ job_id }) => job_id),
    (row, { at }) => fence(row, at, reason),
  );

/**
 * One row a job. The token of a lease that its agent ended stays, so that the same report again is recognised and an older token never
 * is; the token of a lease that expired is forgotten, so that nothing can be reported with it.
 */
export const jobs = defineProjection(table, {
  job_queued: creates(
    (e) => e.data.job_id,
    (e): JobState => ({
      ...e.data,
      status: 'queued',
      result_sha256: null,
      attempt: 0,
      free_returns: 0,
      reissues: 0,
      leased_to: null,
      lease_request_id: null,
      lease_token_sha256: null,
      failure_reason: null,
      queued_position: e.position,
      queued_at: e.at,
      leased_at: null,
      finished_at: null,
    }),
  ),
  job_leased: updates(
    (e) => e.data.job_id,
    (row, { at, data }) => ({
      ...row,
      status: 'leased',
      attempt: data.attempt,
      reissues: data.reissued ? row.reissues + 1 : 0,
      leased_to: data.node_id,
      lease_request_id: data.request_id,
      lease_token_sha256: data.token_sha256,
      leased_at: data.reissued ? row.leased_at : at,
    }),
  ),
  job_lease_expired: updates(
    (e) => e.data.job_id,
    (row) => ({ ...row, ...endedLease, lease_token_sha256: null, status: 'queued' }),
  ),
  job_returned: updates(
    (e) => e.data.job_id,
    (row, { data }) => ({
      ...row,
      ...endedLease,
      status: 'queued',
      ...(data.attempt_spent ? {} : { attempt: row.attempt - 1, free_returns: row.free_returns + 1 }),
    }),
  ),
  job_completed: updates(
    (e) => e.data.job_id,
    (row, { at, data }) => ({ ...row, status: 'completed', result_sha256: data.result_sha256, finished_at: at }),
  ),
  job_failed: updates(
    (e) => e.data.job_id,
    (row, { at, data }) => ({
      ...row,
      status: 'failed',
      result_sha256: data.result_sha256,
      failure_reason: data.reason,
      finished_at: at,
    }),
  ),
  job_fenced: updates(
    (e) => e.data.job_id,
    (row, { at, data }) => fence(row, at, data.reason),
  ),
  node_lost: fencedWith('node_lost'),
  node_revoked: fencedWith('node_revoked'),
});
