import type { JobState } from '../domain/job/state.ts';
import { no, ok, type Result } from '../domain/result.ts';
import type { FleetView } from './fleet-view.ts';
import { PREFIX_MIN_LENGTH } from './resolve-node.ts';

/** The job that an operator means by an id or an unmistakable beginning of one. Refuses: job_unknown (also for an ambiguous one). */
export async function resolveJob(view: Pick<FleetView, 'jobsMatching'>, reference: string): Promise<Result<JobState>> {
  const matching = await view.jobsMatching(reference);
  const [first, ...others] = reference.length < PREFIX_MIN_LENGTH ? [] : matching;
  return first === undefined || others.length > 0 ? no('job_unknown', { job_id: reference }) : ok(first);
}
