import type { StoredPayload } from '../src/domain/job/state.ts';
import { defineProjection, replaces } from './projection.ts';
import { defineTable, text } from './table.ts';

const table = defineTable<StoredPayload>()({
  name: 'job_payloads',
  schema: 'telemetry',
  source: `(SELECT job_id, encode(sha256(convert_to(body, 'UTF8')), 'hex') AS sha256 FROM telemetry.bodies WHERE role = 'payload') AS job_payloads`,
  key: 'job_id',
  columns: { job_id: text, sha256: text },
  indexes: [],
});

/**
 * Which jobs' payloads are stored: decisions look at it before they hand a job out. The body is stored in the batch of its job_queued, so
 * a later command of that batch finds it here; that it was erased, lost or changed since, only the table
 * knows: the digest is made of the body itself, so another body than the one that was queued counts as none.
 */
export const jobPayloads = defineProjection(table, {
  job_queued: replaces(
    (e) => e.data.job_id,
    ({ data }) => ({ job_id: data.job_id, sha256: data.payload_sha256 }),
  ),
});
