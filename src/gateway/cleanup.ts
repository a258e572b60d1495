import type pg from 'pg';
import type { CleanupTask } from '../protocol/lease.ts';
import { CLEANUP_MAX } from '../protocol/limits.ts';
import { reading } from './database.ts';

const LIST = `
  SELECT instance_id, generation FROM fleet.application_instances
  WHERE node_id = $1 AND status = 'lost' AND cleaned_at IS NULL
  ORDER BY ended_at, instance_id LIMIT ${CLEANUP_MAX}`;

/**
 * What a lost node has to remove from its host: the instances that were fenced away from it and that it has not said to be gone, the oldest
 * first, as many as one answer takes. The list repeats with every lease; what is removed is simply not found again.
 */
export async function cleanupOf(pool: pg.Pool, nodeId: string): Promise<readonly CleanupTask[]> {
  const { rows } = await reading(() =>
    pool.query<Omit<CleanupTask, 'kind'>>({ name: 'gateway_cleanup', text: LIST, values: [nodeId] }),
  );
  return rows.map((row) => ({ kind: 'teardown_application', ...row }));
}
