import * as v from 'valibot';
import { LeaseToken, Timestamp } from './identifiers.ts';
import { boundedText } from './text.ts';

/** `POST /v1/agent/jobs/:id/heartbeat`. */
export const HeartbeatRequest = v.strictObject({ lease_token: LeaseToken });
/** `POST /v1/agent/jobs/:id/heartbeat`. */
export type HeartbeatRequest = v.InferOutput<typeof HeartbeatRequest>;

/** 200 of a heartbeat: the lease's new end, by the gateway's clock. */
export const HeartbeatResponse = v.object({ lease_expires_at: Timestamp });
/** 200 of a heartbeat. */
export type HeartbeatResponse = v.InferOutput<typeof HeartbeatResponse>;

/** Why a job failed, whatever its kind. */
const JOB_FAILURE_CODES = [
  /** The agent was told to stop and hands the job back; nothing is wrong with it, another attempt may do. */
  'agent_stopping',
  /** The agent does not know the kind. */
  'kind_unsupported',
  /** The payload is not what the kind says. */
  'payload_invalid',
  /** The work threw, or its result is not what the kind says. */
  'work_failed',
  /** What was started did not answer as ready in time, or ended before; it was removed again. */
  'not_ready',
  /** Something of that name runs on the host that does not carry our labels; it was not touched. */
  'not_owned',
  /** A later generation of the same thing is on the host already. */
  'superseded',
] as const;
/** One of the codes of a failure. */
export type JobFailureCode = (typeof JOB_FAILURE_CODES)[number];

/** Longest detail of a failure. */
export const FAILURE_DETAIL_MAX_LENGTH = 1024;

/** The result of a failed job of any kind. */
export const JobFailure = v.strictObject({
  code: v.picklist(JOB_FAILURE_CODES),
  detail: boundedText(FAILURE_DETAIL_MAX_LENGTH),
});
/** The result of a failed job of any kind. */
export type JobFailure = v.InferOutput<typeof JobFailure>;

/**
 * `POST /v1/agent/jobs/:id/complete`. A succeeded job's `result` is checked by its kind (`parseJobResult`), which the
 * gateway knows only once it has the job. Repeating an accepted completion is 200.
 */
export const CompleteRequest = v.variant('outcome', [
  v.strictObject({ lease_token: LeaseToken, outcome: v.literal('succeeded'), result: v.unknown() }),
  v.strictObject({ lease_token: LeaseToken, outcome: v.literal('failed'), result: JobFailure }),
]);
/** `POST /v1/agent/jobs/:id/complete`. */
export type CompleteRequest = v.InferOutput<typeof CompleteRequest>;
