import type { JobState } from '../../src/domain/job/state.ts';
import { isoTime } from './format.ts';

/** A job for --json: its row with times in ISO 8601, without the hash of the lease's token. */
export function jobJson(job: JobState) {
  const { lease_token_sha256: _, queued_at, leased_at, finished_at, ...row } = job;
  return {
    ...row,
    queued_at: isoTime(queued_at),
    leased_at: isoTime(leased_at),
    finished_at: isoTime(finished_at),
  };
}
