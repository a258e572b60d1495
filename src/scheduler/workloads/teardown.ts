import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { teardownInstanceCommand } from '../../commands/deployment.ts';
import { underTerm } from '../../commands/term.ts';
import { teardownApplicationJob } from '../../commands/workload-jobs.ts';
import { RowView } from '../../transactor/row-view.ts';
import { giveAll, type Led, type PassReport } from '../pass.ts';

const teardownInstance = underTerm(teardownInstanceCommand);

const MOST = 1_000;

/**
 * Instances that are not wanted any more and that no route leads to: another has taken over, they failed and are replaced, or their
 * deployment ends. One whose teardown failed is asked for again after a while.
 */
const UNWANTED = `
  SELECT i.instance_id, i.deployment_id
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
  ORDER BY i.requested_at, i.instance_id LIMIT ${MOST}`;

/** Has instances taken down that nobody wants any more. */
export async function teardownInstances(pool: pg.Pool, led: Led): Promise<PassReport> {
  const { rows } = await pool.query<{ instance_id: string; deployment_id: string }>({
    name: 'unwanted_instances',
    text: UNWANTED,
  });
  const view = new RowView(pool);
  const loaded = rows.map(({ instance_id, deployment_id }) =>
    Promise.all([view.get('application_instances', instance_id), view.get('deployments', deployment_id)]),
  );
  const commands = (await Promise.all(loaded)).flatMap(([instance, deployment]) => {
    if (instance === undefined) return [];
    const { instance_id, node_id } = instance;
    const job = node_id === null ? null : teardownApplicationJob(randomUUID(), instance, deployment?.org_id ?? null);
    return [{ instance_id, job }];
  });
  return giveAll(led, teardownInstance, commands);
}
