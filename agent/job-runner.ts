import {
  isJobKind,
  type JobKind,
  type JobPayload,
  type JobResult,
  parseJobPayload,
  parseJobResult,
} from '../src/protocol/job-kinds/registry.ts';
import { FAILURE_DETAIL_MAX_LENGTH, type JobFailureCode } from '../src/protocol/jobs.ts';
import { toBoundedText } from '../src/protocol/text.ts';
import { deliver, type Outcome } from './completion.ts';
import type { Lease } from './gateway-answers.ts';
import type { GatewayClient } from './gateway-client.ts';
import { type HeartbeatDependencies, keepLease, type LeaseLoss } from './heartbeat.ts';
import { describeError } from './log.ts';
import { actAfter, settled, WorkStuck } from './signals.ts';

/** Work that was told to end has this long to do so; then the process is the problem. */
const SETTLE_MS = 10_000;

/** The lease that work is done under, for work that asks the gateway for more. */
export type JobLease = Pick<Lease, 'id' | 'token'>;

/** The work of one kind. Must end soon after `signal` is aborted. */
export type JobHandler<K extends JobKind> = (
  payload: JobPayload<K>,
  signal: AbortSignal,
  lease: JobLease,
) => Promise<JobResult<K>>;

/** A handler for each kind that this host can do; the agent asks for no others. */
export type JobHandlers = { readonly [K in JobKind]?: JobHandler<K> };

/** Work that failed for a reason that has a code of its own. The message is what the operator reads. */
export class JobFailed extends Error {
  override readonly name = 'JobFailed';
  readonly code: JobFailureCode;

  constructor(code: JobFailureCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** What running a job needs. */
export interface JobRunnerDependencies extends HeartbeatDependencies {
  readonly gateway: () => Pick<GatewayClient, 'heartbeat' | 'complete'>;
  readonly handlers: JobHandlers;
  /** How long work may go on after the agent was told to stop. */
  readonly stopGraceMs: number;
  /** Aborted when the agent has to start anew at once: work ends, and its lease is left to run out. */
  readonly abandoned: AbortSignal;
}

/**
 * Runs a leased job to its end: works, extends the lease meanwhile, hands the outcome in until the gateway takes it.
 * A lost lease ends the work, and nothing is handed in: the job is somebody else's. When `stopping` is aborted the work may go
 * on for the grace period, then ends, and the job is handed back as failed with `agent_stopping`.
 * Throws only when the work does not end although it was told to.
 */
export async function runLeasedJob(lease: Lease, deps: JobRunnerDependencies, stopping: AbortSignal): Promise<void> {
  const { log, time } = deps;
  const lost = new AbortController();
  const graceOver = new AbortController();
  const finished = new AbortController();
  const keeping = abortWhenLost(lease, deps, finished.signal, lost);
  const abandoning = actAfter(deps.abandoned, 0, finished.signal, time, () =>
    lost.abort('abandoned' satisfies LeaseLoss),
  );
  const grace = actAfter(stopping, deps.stopGraceMs, finished.signal, time, () => graceOver.abort());
  try {
    log.info({ job: lease.id, kind: lease.kind }, 'job started');
    const outcome = await perform(lease, deps, lost.signal, graceOver.signal);
    if (lost.signal.aborted) {
      log.warn({ job: lease.id, why: lost.signal.reason as LeaseLoss }, 'lease lost, work ended');
      return;
    }
    const delivery = await deliver(lease, outcome, deps, lost.signal, stopping);
    log.info({ job: lease.id, outcome: outcome.outcome, delivery }, 'job ended');
  } finally {
    finished.abort();
    await Promise.all([keeping, grace, abandoning]);
  }
}

async function abortWhenLost(
  lease: Lease,
  deps: JobRunnerDependencies,
  finished: AbortSignal,
  lost: AbortController,
): Promise<void> {
  const loss = await keepLease(lease, deps, finished);
  if (loss !== undefined) lost.abort(loss);
}

/** Does the work and says what came of it. After a lost lease the answer means nothing. */
async function perform(
  lease: Lease,
  deps: JobRunnerDependencies,
  lost: AbortSignal,
  graceOver: AbortSignal,
): Promise<Outcome> {
  if (!isJobKind(lease.kind)) return failed('kind_unsupported', 'this agent does not know the kind');
  const end = AbortSignal.any([lost, graceOver]);
  try {
    const work = workOf(lease.kind, lease, deps.handlers, end);
    const outcome = await settled(work, end, SETTLE_MS, deps.time);
    return end.aborted && outcome.outcome === 'failed' ? handedBack() : outcome;
  } catch (error) {
    if (error instanceof JobFailed && !end.aborted) return failed(error.code, error.message);
    if (error instanceof WorkStuck) throw new Error(`the work of job ${lease.id} did not end`, { cause: error });
    return end.aborted ? handedBack() : failed('work_failed', describeError(error));
  }
}

// oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- it ties the payload to the handler, inside
async function workOf<K extends JobKind>(
  kind: K,
  lease: Lease,
  handlers: JobHandlers,
  signal: AbortSignal,
): Promise<Outcome> {
  const handler = handlers[kind];
  if (handler === undefined) return failed('kind_unsupported', 'this host does not do this kind of job');
  const parsed = parseJobPayload(kind, lease.payload);
  if (!parsed.ok) return failed('payload_invalid', parsed.problem);
  const result = parseJobResult(kind, await handler(parsed.value, signal, lease));
  return result.ok ? { outcome: 'succeeded', result: result.value } : failed('work_failed', result.problem);
}

function failed(code: JobFailureCode, detail: string): Outcome {
  return {
    outcome: 'failed',
    result: { code, detail: toBoundedText(detail, FAILURE_DETAIL_MAX_LENGTH) ?? 'no detail' },
  };
}

function handedBack(): Outcome {
  return failed('agent_stopping', 'the agent was told to stop before the work was done');
}
