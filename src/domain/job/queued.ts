import type { Body } from '../decision.ts';
import type { EventData, NewEvent } from '../event/catalogue.ts';
import { jobStream } from '../stream.ts';

/** A job that a decision may queue, made beforehand: its id, and its payload as canonical JSON text. */
export type JobToQueue = EventData<'job_queued'> & { readonly payload: string };

/** The event that queues a job, and the body of its payload: parts of a decision about what the job is for. */
export function queued({ payload, ...job }: JobToQueue): { events: readonly NewEvent[]; bodies: readonly Body[] } {
  return {
    events: [{ stream: jobStream(job.job_id), event: { type: 'job_queued', data: job } }],
    bodies: [{ jobId: job.job_id, role: 'payload', sha256: job.payload_sha256, text: payload }],
  };
}
