import type { RecordedOf } from '../src/domain/event/recorded.ts';
import type { LeaseGuard } from '../src/domain/job/state.ts';
import { defineProjection, removes, removesEach, replaces } from './projection.ts';
import { defineTable, text, timestamp } from './table.ts';

const table = defineTable<LeaseGuard>()({
  name: 'job_leases',
  schema: 'telemetry',
  guard: true,
  key: 'job_id',
  columns: { job_id: text, node_id: text, token_sha256: text, expires_at: timestamp },
  indexes: [{ name: 'job_leases_expires_at', columns: ['expires_at'] }],
});

const fenced = removesEach<LeaseGuard, RecordedOf<'node_lost'> | RecordedOf<'node_revoked'>>((e) =>
  e.data.fenced_jobs.map(({ job_id }) => job_id),
);

/**
 * The guard of each live lease. Events open and close it, heartbeats extend it in between; that extension is telemetry, so a lost row
 * is replaced by one full fresh lease.
 */
export const jobLeases = defineProjection(table, {
  job_leased: replaces(
    (e) => e.data.job_id,
    ({ data }) => ({
      job_id: data.job_id,
      node_id: data.node_id,
      token_sha256: data.token_sha256,
      expires_at: data.expires_at,
    }),
  ),
  job_lease_expired: removes((e) => e.data.job_id),
  job_returned: removes((e) => e.data.job_id),
  job_completed: removes((e) => e.data.job_id),
  job_failed: removes((e) => e.data.job_id),
  job_fenced: removes((e) => e.data.job_id),
  node_lost: fenced,
  node_revoked: fenced,
});
