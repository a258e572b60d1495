import { append, type Body, type Decision, nothing, refuse, replying, withBodies } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import type { NodeState } from '../node/state.ts';
import { jobStream } from '../stream.ts';
import type { JobState } from './state.ts';

/** A job to be queued, its payload as canonical JSON text. Exactly one of `node_id` and `pool` says who may take it. */
export type QueueJob = EventData<'job_queued'> & { readonly payload: string };

/** Queues a job. The same job again is nothing new. Refuses: job_exists, node_unknown. */
export function queueJob(
  { payload, ...job }: QueueJob,
  state: { job: JobState | undefined; node: NodeState | undefined },
): Decision {
  if (state.job !== undefined) {
    const same =
      state.job.payload_sha256 === job.payload_sha256 &&
      state.job.kind === job.kind &&
      state.job.node_id === job.node_id &&
      state.job.pool === job.pool;
    return same ? nothing({ job_id: job.job_id }) : refuse('job_exists', { job_id: job.job_id });
  }
  if (job.node_id !== null && state.node === undefined) return refuse('node_unknown', { node: job.node_id });
  const body: Body = { jobId: job.job_id, role: 'payload', sha256: job.payload_sha256, text: payload };
  const queued = append(jobStream(job.job_id), { type: 'job_queued', data: job });
  return replying(withBodies(queued, body), { job_id: job.job_id });
}
