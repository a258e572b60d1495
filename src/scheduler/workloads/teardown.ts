import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { teardownInstanceCommand } from '../../commands/deployment.ts';
import { underTerm } from '../../commands/term.ts';
import { teardownApplicationJob } from '../../commands/workload-jobs.ts';
import type { TeardownInstance } from '../../domain/deployment/teardown.ts';
import { RowView } from '../../transactor/row-view.ts';
import { giveAll, type Led, type PassReport } from '../pass.ts';
import { NodeQueues } from './node-queues.ts';
import { inPages } from './pages.ts';

const teardownInstance = underTerm(teardownInstanceCommand);

/**
 * Instances that are not wanted any more and that no route leads to: another has taken over, they failed and are replaced, or their
 * deployment ends. One whose teardown failed is asked for again after a while.
 */
const UNWANTED = `
  SELECT i.instance_id, i.deployment_id, i.node_id
  FROM fleet.application_instances i
  JOIN fleet.deployments d USING (deployment_id)
  LEFT JOIN fleet.jobs j ON j.job_id = i.job_id
  WHERE (
      i.status = 'draining'
      OR (i.status = 'error' AND EXISTS (
        SELECT 1 FROM fleet.application_instances n WHERE n.replaces_instance_id = i.instance_id))
      OR (d.status IN ('removing', 'failed')
          AND i.status IN ('pending_placement', 'reserved', 'deploying', 'ready', 'error'))
    )
    AND (i.status <> 'draining' OR j.job_id IS NULL OR j.status = 'completed'
         OR (j.status = 'failed' AND j.finished_at <= clock_timestamp() - interval '30 seconds'))
    AND NOT EXISTS (
      SELECT 1 FROM fleet.ingress_routes r
      WHERE r.deployment_id = i.deployment_id AND r.status IN ('active', 'publishing')
        AND r.instance_ids @> to_jsonb(i.instance_id))
    AND i.instance_id <> ALL($1::text[])
  ORDER BY i.requested_at, i.instance_id LIMIT $2`;

interface Unwanted {
  readonly instance_id: string;
  readonly deployment_id: string;
  readonly node_id: string | null;
}

/** Has instances taken down that nobody wants any more, as far as the queues of their nodes have room. */
export function teardownInstances(pool: pg.Pool, led: Led, page: number): Promise<PassReport> {
  return inPages<Unwanted>(
    page,
    async (seen, limit) => {
      const values = [seen, limit];
      return (await pool.query<Unwanted>({ name: 'unwanted_instances', text: UNWANTED, values })).rows;
    },
    ({ instance_id }) => instance_id,
    async (rows) => giveAll(led, teardownInstance, await teardowns(pool, rows)),
  );
}

async function teardowns(pool: pg.Pool, rows: readonly Unwanted[]) {
  const queues = await NodeQueues.read(
    pool,
    rows.flatMap(({ node_id }) => node_id ?? []),
  );
  const view = new RowView(pool);
  const loaded = rows.map(({ instance_id, deployment_id }) =>
    Promise.all([view.get('application_instances', instance_id), view.get('deployments', deployment_id)]),
  );
  return (await Promise.all(loaded)).flatMap(([instance, deployment]): TeardownInstance[] => {
    if (instance === undefined) return [];
    const { instance_id, node_id } = instance;
    if (node_id === null) return [{ instance_id, job: null }];
    if (!queues.take(node_id)) return [];
    return [{ instance_id, job: teardownApplicationJob(randomUUID(), instance, deployment?.org_id ?? null) }];
  });
}
