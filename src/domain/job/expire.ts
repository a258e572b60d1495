import { append, type Decision, type DecisionTime, following, nothing } from '../decision.ts';
import type { FleetEvent } from '../event/catalogue.ts';
import { jobStream } from '../stream.ts';
import { afterJob, type Purpose } from './purpose.ts';
import type { JobState, LeaseGuard } from './state.ts';

/**
 * Takes a job back whose lease has run out: to the queue while attempts are left, else to failed. A lease that was extended meanwhile,
 * or whose guard is missing (telemetry lost: it gets one full fresh lease first), stays.
 */
export function expireLease(
  { job_id }: { job_id: string },
  { job, lease, purpose }: { job: JobState | undefined; lease: LeaseGuard | undefined; purpose: Purpose },
  { now }: DecisionTime,
): Decision {
  if (job?.status !== 'leased' || job.leased_to === null) return nothing();
  if (lease === undefined || lease.expires_at > now) return nothing();
  const common = { job_id, node_id: job.leased_to, attempt: job.attempt };
  const events: FleetEvent[] = [{ type: 'job_lease_expired', data: common }];
  const exhausted = job.attempt >= job.max_attempts;
  if (exhausted) {
    events.push({ type: 'job_failed', data: { ...common, reason: 'attempts_exhausted', result_sha256: null } });
  }
  const after = exhausted ? afterJob(purpose, { succeeded: false, reason: 'attempts_exhausted' }) : [];
  return following(append(jobStream(job_id), ...events), after);
}
