import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { Pool } from '../domain/fields.ts';
import type { QueueJob } from '../domain/job/queue.ts';
import { type JobKind, type Parsed, parseJobPayload } from '../protocol/job-kinds/registry.ts';

/** How often a job is tried before it fails, where nobody says otherwise. */
export const DEFAULT_MAX_ATTEMPTS = 3;

/** A job as an operator asks for it: exactly one of `nodeId` and `pool`. */
export interface NewJob {
  readonly jobId: string;
  readonly kind: JobKind;
  readonly nodeId: string | null;
  readonly pool: Pool | null;
  readonly payload: unknown;
  readonly maxAttempts?: number;
}

/** The command that queues a job, its payload checked against the kind and made canonical; or what is wrong with the payload. */
export function newJob({
  jobId,
  kind,
  nodeId,
  pool,
  payload,
  maxAttempts = DEFAULT_MAX_ATTEMPTS,
}: NewJob): Parsed<QueueJob> {
  const parsed = parseJobPayload(kind, payload);
  if (!parsed.ok) return parsed;
  const text = canonicalize(parsed.value);
  if (text === undefined) return { ok: false, problem: 'payload: expected JSON' };
  return {
    ok: true,
    value: {
      job_id: jobId,
      kind,
      node_id: nodeId,
      pool,
      org_id: null,
      payload_sha256: hash('sha256', text, 'hex'),
      max_attempts: maxAttempts,
      payload: text,
    },
  };
}
