import { append, type Body, type Decision, nothing, refuse, replying, withBodies } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import { MOST_OPEN_JOBS } from '../node/limits.ts';
import type { NodeState } from '../node/state.ts';
import { jobStream } from '../stream.ts';
import type { JobState } from './state.ts';

/** A job to be queued, its payload as canonical JSON text. Exactly one of `node_id` and `pool` says who may take it. */
export type QueueJob = EventData<'job_queued'> & { readonly payload: string };

/** What a job is queued with: two jobs of one id that agree in all of it are the same job. */
const QUEUED_WITH = [
  'kind',
  'node_id',
  'pool',
  'org_id',
  'payload_sha256',
  'max_attempts',
] as const satisfies readonly (keyof JobState & keyof EventData<'job_queued'>)[];

/** Queues a job. The same job again is nothing new. Refuses: job_target_unclear, job_exists, node_unknown, node_queue_full. */
export function queueJob(
  { payload, ...job }: QueueJob,
  state: { job: JobState | undefined; node: NodeState | undefined; openOnNode: number },
): Decision {
  if ((job.node_id === null) === (job.pool === null)) return refuse('job_target_unclear', { job_id: job.job_id });
  const { job: known } = state;
  if (known !== undefined) {
    const same = QUEUED_WITH.every((field) => known[field] === job[field]);
    return same ? nothing({ job_id: job.job_id }) : refuse('job_exists', { job_id: job.job_id });
  }
  if (job.node_id !== null && state.node === undefined) return refuse('node_unknown', { node: job.node_id });
  if (state.openOnNode >= MOST_OPEN_JOBS)
    return refuse('node_queue_full', { node_id: job.node_id, jobs: state.openOnNode });
  const body: Body = { jobId: job.job_id, role: 'payload', sha256: job.payload_sha256, text: payload };
  const queued = append(jobStream(job.job_id), { type: 'job_queued', data: job });
  return replying(withBodies(queued, body), { job_id: job.job_id });
}
