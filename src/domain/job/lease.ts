import { type AgentIdentity, authenticate } from '../certificate/authenticate.ts';
import type { CertificateState } from '../certificate/state.ts';
import { append, type Decision, type DecisionTime, following, nothing, refuse, replying } from '../decision.ts';
import { MOST_HELD_JOBS } from '../node/limits.ts';
import type { NodeState } from '../node/state.ts';
import { jobStream } from '../stream.ts';
import { afterJob, type Purpose } from './purpose.ts';
import type { JobState, StoredPayload } from './state.ts';

/** An agent asks for work. The token itself stays with the gateway that made it; the log holds its SHA-256. */
export interface LeaseJob extends AgentIdentity {
  readonly request_id: string;
  readonly kinds: readonly string[];
  readonly token_sha256: string;
  readonly lease_ms: number;
}

/** How often the lease of one attempt is issued again. Each time is an event, so an agent that only asks must come to an end. */
export const MAX_REISSUES = 5;

/** What a draining node is still given: jobs that take away what it has. */
const LEAVING: readonly string[] = ['teardown_application', 'publish_ingress'];

/** The kinds of job that a node may be given in its status. */
export function leasableKinds({ status }: Pick<NodeState, 'status'>, kinds: readonly string[]): readonly string[] {
  if (status === 'active') return kinds;
  return status === 'draining' ? kinds.filter((kind) => LEAVING.includes(kind)) : [];
}

/** Whether a node may be given any job in its status. An active one that knows no kind may; there is just none for it. */
export function mayLease(node: Pick<NodeState, 'status'>, kinds: readonly string[]): boolean {
  return node.status === 'active' || leasableKinds(node, kinds).length > 0;
}

/** A job that may be handed out, and its payload as far as it is still stored. */
export interface Offer {
  readonly job: JobState;
  readonly payload: StoredPayload | undefined;
  readonly purpose: Purpose;
}

/** What a lease is decided on: who asks, the job this request was given before, and the oldest that waits for node and pool. */
export interface LeaseState {
  readonly node: NodeState | undefined;
  readonly certificate: CertificateState | undefined;
  readonly requested: Offer | undefined;
  readonly forNode: Offer | undefined;
  readonly forPool: Offer | undefined;
  /** How many jobs it holds; read where one of its pool waits. */
  readonly held: number;
}

/**
 * Hands a job to a node for a bounded time: its own jobs first, then its pool's when it is schedulable and does not hold
 * {@link MOST_HELD_JOBS} already. A repeated `request_id` (the
 * answer was lost) gets the same job under a fresh token, never a second one, and at most {@link MAX_REISSUES} times: then the lease is
 * left to run out. Replies `job_id: null` when nothing waits. A job whose payload is gone can be done by nobody: it fails, and the reply
 * says with `failed_job_id` that it is worth asking again. Refuses what {@link authenticate} refuses, and node_not_active.
 */
export function leaseJob(request: LeaseJob, state: LeaseState, { now }: DecisionTime): Decision {
  const identity = authenticate(request, state, { now });
  if (!identity.ok) return identity;
  const { node } = identity.value;
  if (!mayLease(node, request.kinds)) return refuse('node_not_active', { status: node.status });
  const { requested } = state;
  if (requested !== undefined && requested.job.leased_to === node.node_id) {
    const again = requested.job.status === 'leased' && requested.job.reissues < MAX_REISSUES;
    return again ? handOut(request, requested, node, now, true) : nothing({ job_id: null });
  }
  const takesPooled = node.schedulable && state.held < MOST_HELD_JOBS;
  const offer = state.forNode ?? (takesPooled ? state.forPool : undefined);
  if (offer !== undefined) return handOut(request, offer, node, now, false);
  return node.status === 'active' ? nothing({ job_id: null }) : refuse('node_not_active', { status: node.status });
}

function handOut(
  request: LeaseJob,
  { job, payload, purpose }: Offer,
  node: NodeState,
  now: number,
  again: boolean,
): Decision {
  return payload?.sha256 === job.payload_sha256
    ? grant(request, job, node, now, again)
    : failForPayload(job, purpose, node);
}

function failForPayload(job: JobState, purpose: Purpose, node: NodeState): Decision {
  const { job_id, attempt } = job;
  const failed = append(jobStream(job_id), {
    type: 'job_failed',
    data: { job_id, node_id: node.node_id, attempt, reason: 'payload_missing', result_sha256: null },
  });
  const after = afterJob(purpose, { succeeded: false, reason: 'job_failed' });
  return replying(following(failed, after), { job_id: null, failed_job_id: job_id });
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
