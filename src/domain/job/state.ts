import type { Pool } from '../fields.ts';

/** Where a job is. Completed and failed are final. */
export type JobStatus = 'queued' | 'leased' | 'completed' | 'failed';

/** Whether a job may still be done. */
export function isOpen(job: Pick<JobState, 'status'> | undefined): boolean {
  return job?.status === 'queued' || job?.status === 'leased';
}

/** A job: the row of `jobs`. `queued_position` orders the queue and stays when a lease expires, so that a retry goes first. */
export interface JobState {
  readonly job_id: string;
  readonly kind: string;
  readonly status: JobStatus;
  readonly node_id: string | null;
  readonly pool: Pool | null;
  readonly org_id: string | null;
  readonly payload_sha256: string;
  readonly result_sha256: string | null;
  readonly max_attempts: number;
  readonly attempt: number;
  /** How often it was handed back without using an attempt. */
  readonly free_returns: number;
  /** How often the lease of this attempt was issued again, because its answer seemed lost. */
  readonly reissues: number;
  readonly leased_to: string | null;
  readonly lease_request_id: string | null;
  readonly lease_token_sha256: string | null;
  readonly failure_reason: string | null;
  readonly queued_position: number;
  readonly queued_at: number;
  readonly leased_at: number | null;
  readonly finished_at: number | null;
}

/** That the payload of a job is stored, and which. It is telemetry: it may be erased, or lost, while the job waits. */
export interface StoredPayload {
  readonly job_id: string;
  readonly sha256: string;
}

/**
 * The guard of a live lease: the row of `telemetry.job_leases`, which a heartbeat extends without an event. It is locked while a
 * command decides about it, so that either the heartbeat or the expiry wins, never both.
 */
export interface LeaseGuard {
  readonly job_id: string;
  readonly node_id: string;
  readonly token_sha256: string;
  readonly expires_at: number;
}
