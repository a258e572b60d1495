import { type AgentIdentity, authenticate } from '../certificate/authenticate.ts';
import type { CertificateState } from '../certificate/state.ts';
import {
  append,
  type Body,
  type Decision,
  type DecisionTime,
  following,
  nothing,
  refuse,
  withBodies,
} from '../decision.ts';
import type { FleetEvent, NewEvent } from '../event/catalogue.ts';
import type { NodeState } from '../node/state.ts';
import { jobStream } from '../stream.ts';
import { afterJob, type Purpose, type Report } from './purpose.ts';
import type { JobState, LeaseGuard } from './state.ts';

/** How often a job may be handed back without using an attempt: agents stop now and then, but not for ever. */
export const MAX_FREE_RETURNS = 3;

/** An agent reports how a job ended; `returned` hands it back undone (the agent is stopping). The result is canonical JSON text. */
export interface CompleteJob extends AgentIdentity {
  readonly job_id: string;
  readonly token_sha256: string;
  readonly outcome: 'succeeded' | 'failed' | 'returned';
  readonly result: string;
  readonly result_sha256: string;
  /** What the result says, as far as the log keeps it. */
  readonly report: Report;
}

/**
 * Ends a lease with its outcome. Completion and expiry exclude one another: whoever closes the guard first wins, so a completion that
 * comes after the deadline but before the expiry was decided still counts. An accepted completion repeated is nothing new. A job that
 * was handed back {@link MAX_FREE_RETURNS} times spends an attempt with each further time.
 * Refuses what {@link authenticate} refuses, and lease_conflict (another token, another node, fenced, unknown job).
 */
export function completeJob(
  command: CompleteJob,
  state: {
    node: NodeState | undefined;
    certificate: CertificateState | undefined;
    job: JobState | undefined;
    lease: LeaseGuard | undefined;
    purpose: Purpose;
  },
  time: DecisionTime,
): Decision {
  const identity = authenticate(command, state, time);
  if (!identity.ok) return identity;
  const { job, lease } = state;
  const nodeId = identity.value.node.node_id;
  // A job that was handed back is leased to nobody, but still knows the token.
  const held = job?.lease_token_sha256 === command.token_sha256 && (job.leased_to ?? nodeId) === nodeId;
  if (job === undefined || !held) return refuse('lease_conflict');
  if (job.status !== 'leased') return isRepeated(command, job) ? nothing() : refuse('lease_conflict');
  if (lease !== undefined && lease.token_sha256 !== command.token_sha256) return refuse('lease_conflict');
  const events = endEvents(command, job, nodeId);
  const ended = following(append(jobStream(job.job_id), ...events), afterEnd(command, events, state.purpose));
  if (command.outcome === 'returned') return ended;
  const body: Body = { jobId: job.job_id, role: 'result', sha256: command.result_sha256, text: command.result };
  return withBodies(ended, body);
}

/** What follows for what the job was for. A job that was handed back and waits again has not ended. */
function afterEnd({ outcome, report }: CompleteJob, events: readonly FleetEvent[], purpose: Purpose): NewEvent[] {
  if (outcome === 'succeeded') return afterJob(purpose, { succeeded: true, report });
  const failed = events.find(({ type }) => type === 'job_failed');
  if (failed === undefined) return [];
  return afterJob(purpose, { succeeded: false, reason: outcome === 'failed' ? 'job_failed' : 'attempts_exhausted' });
}

/** Whether the job's lease ended with just this report. */
function isRepeated({ outcome, result_sha256 }: CompleteJob, job: JobState): boolean {
  switch (outcome) {
    case 'succeeded':
      return job.status === 'completed' && job.result_sha256 === result_sha256;
    case 'failed':
      return job.status === 'failed' && job.result_sha256 === result_sha256;
    case 'returned':
      // The token of an expired lease is forgotten, so attempts that this token used up were used up by handing back.
      return job.status === 'queued' || job.failure_reason === 'attempts_exhausted';
  }
}

function endEvents(command: CompleteJob, job: JobState, nodeId: string): FleetEvent[] {
  const common = { job_id: job.job_id, node_id: nodeId, attempt: job.attempt };
  const { result_sha256 } = command;
  switch (command.outcome) {
    case 'succeeded':
      return [{ type: 'job_completed', data: { ...common, result_sha256 } }];
    case 'failed':
      return [{ type: 'job_failed', data: { ...common, reason: 'agent_reported', result_sha256 } }];
    case 'returned': {
      const spent = job.free_returns >= MAX_FREE_RETURNS;
      const returned: FleetEvent = { type: 'job_returned', data: { ...common, attempt_spent: spent } };
      if (!spent || job.attempt < job.max_attempts) return [returned];
      const reason = 'attempts_exhausted';
      return [returned, { type: 'job_failed', data: { ...common, reason, result_sha256: null } }];
    }
  }
}
