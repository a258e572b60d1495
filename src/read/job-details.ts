import { hash } from 'node:crypto';
import type { JobState, LeaseGuard } from '../domain/job/state.ts';
import { ok, type Result } from '../domain/result.ts';
import type { FleetView, ViewMoment } from './fleet-view.ts';
import { resolveJob } from './resolve-job.ts';

/**
 * One job with its bodies and its live lease; these are null in the past, and bodies also once they were erased or
 * are no longer those whose digest the log has.
 */
export interface JobDetails {
  readonly moment: ViewMoment;
  readonly live: boolean;
  readonly job: JobState;
  readonly lease: LeaseGuard | null;
  readonly payload: unknown;
  readonly result: unknown;
}

/** Reads one job by its id or the beginning of it. Refuses: job_unknown. */
export async function readJob(view: FleetView, reference: string): Promise<Result<JobDetails>> {
  const resolved = await resolveJob(view, reference);
  if (!resolved.ok) return resolved;
  const { value: job } = resolved;
  const body = async (role: 'payload' | 'result', sha256: string | null): Promise<unknown> => {
    const text = await view.telemetry?.body(job.job_id, role);
    return text === undefined || hash('sha256', text) !== sha256 ? null : JSON.parse(text);
  };
  return ok({
    moment: view.moment,
    live: view.telemetry !== null,
    job,
    lease: (await view.telemetry?.lease(job.job_id)) ?? null,
    payload: await body('payload', job.payload_sha256),
    result: await body('result', job.result_sha256),
  });
}
