import * as v from 'valibot';
import { event } from '../event/definition.ts';
import { count, instantMs, jobKind, pool, sha256Hex, uuid } from '../fields.ts';

const returned = { job_id: uuid, node_id: uuid, attempt: count } as const;

/** Events of stream `job-<id>`. Payloads and results are digests here; the bodies lie in an erasable table. */
export const jobEvents = {
  job_queued: event(
    v.strictObject({
      job_id: uuid,
      kind: jobKind,
      node_id: v.nullable(uuid),
      pool: v.nullable(pool),
      org_id: v.nullable(uuid),
      payload_sha256: sha256Hex,
      max_attempts: v.pipe(count, v.minValue(1), v.maxValue(100)),
    }),
  ),
  job_leased: event(
    v.strictObject({
      job_id: uuid,
      node_id: uuid,
      attempt: count,
      request_id: uuid,
      token_sha256: sha256Hex,
      expires_at: instantMs,
      reissued: v.boolean(),
    }),
  ),
  job_lease_expired: event(v.strictObject({ job_id: uuid, node_id: uuid, attempt: count })),
  job_returned: {
    version: 2,
    data: v.strictObject({ ...returned, attempt_spent: v.boolean() }),
    // At first every return was free.
    earlier: {
      1: { data: v.strictObject(returned), upcast: (data: object) => ({ ...data, attempt_spent: false }) },
    },
  },
  job_fenced: event(
    v.strictObject({
      job_id: uuid,
      node_id: v.nullable(uuid),
      reason: v.picklist(['node_retired', 'node_draining', 'not_needed']),
    }),
  ),
  job_completed: event(v.strictObject({ job_id: uuid, node_id: uuid, attempt: count, result_sha256: sha256Hex })),
  job_failed: event(
    v.strictObject({
      job_id: uuid,
      node_id: uuid,
      attempt: count,
      reason: v.picklist(['agent_reported', 'attempts_exhausted', 'payload_missing']),
      result_sha256: v.nullable(sha256Hex),
    }),
  ),
} as const;
