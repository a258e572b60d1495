import { type AgentIdentity, authenticate } from '../certificate/authenticate.ts';
import type { CertificateState } from '../certificate/state.ts';
import { append, type Decision, type DecisionTime, nothing, refuse, replying } from '../decision.ts';
import type { NodeState } from '../node/state.ts';
import { jobStream } from '../stream.ts';
import type { JobState } from './state.ts';

/** An agent asks for work. The token itself stays with the gateway that made it; the log holds its SHA-256. */
export interface LeaseJob extends AgentIdentity {
  readonly request_id: string;
  readonly kinds: readonly string[];
  readonly token_sha256: string;
  readonly lease_ms: number;
}

/** What a lease is decided on: who asks, the job this request was given before, and the oldest that waits for node and pool. */
export interface LeaseState {
  readonly node: NodeState | undefined;
  readonly certificate: CertificateState | undefined;
  readonly requested: JobState | undefined;
  readonly forNode: JobState | undefined;
  readonly forPool: JobState | undefined;
}

/**
 * Hands a job to a node for a bounded time: its own jobs first, then its pool's when it is schedulable. A repeated `request_id` (the
 * answer was lost) gets the same job under a fresh token, never a second one. Replies `job_id: null` when nothing waits.
 * Refuses what {@link authenticate} refuses, and node_not_active.
 */
export function leaseJob(request: LeaseJob, state: LeaseState, { now }: DecisionTime): Decision {
  const identity = authenticate(request, state, { now });
  if (!identity.ok) return identity;
  const { node } = identity.value;
  if (node.status !== 'active') return refuse('node_not_active', { status: node.status });
  if (state.requested !== undefined && state.requested.leased_to === node.node_id) {
    const again = state.requested.status === 'leased';
    return again ? grant(request, state.requested, node, now, true) : nothing({ job_id: null });
  }
  const job = state.forNode ?? (node.schedulable ? state.forPool : undefined);
  return job === undefined ? nothing({ job_id: null }) : grant(request, job, node, now, false);
}

function grant(request: LeaseJob, job: JobState, node: NodeState, now: number, reissued: boolean): Decision {
  const attempt = reissued ? job.attempt : job.attempt + 1;
  const expiresAt = now + request.lease_ms;
  const leased = append(jobStream(job.job_id), {
    type: 'job_leased',
    data: {
      job_id: job.job_id,
      node_id: node.node_id,
      attempt,
      request_id: request.request_id,
      token_sha256: request.token_sha256,
      expires_at: expiresAt,
      reissued,
    },
  });
  return replying(leased, {
    job_id: job.job_id,
    kind: job.kind,
    payload_sha256: job.payload_sha256,
    attempt,
    lease_expires_at: expiresAt,
  });
}
