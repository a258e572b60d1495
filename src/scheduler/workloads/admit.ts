import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { admitNetworkCommand, unplaceInstanceCommand } from '../../commands/deployment.ts';
import { underTerm } from '../../commands/term.ts';
import { ensureApplicationJob } from '../../commands/workload-jobs.ts';
import { ADMISSION_TIMEOUT_MS } from '../../domain/deployment/unplace.ts';
import { SCHEDULER } from '../../domain/scheduler/state.ts';
import { FRESH_MS } from '../../domain/silence.ts';
import { EPOCH } from '../../log/epoch.ts';
import { RowView } from '../../transactor/row-view.ts';
import { giveAll, giveMade, type Led, type PassReport } from '../pass.ts';
import { NodeQueues } from './node-queues.ts';
import { inPages } from './pages.ts';

const admitNetwork = underTerm(admitNetworkCommand);
const unplaceInstance = underTerm(unplaceInstanceCommand);

/** Instances with a node that was heard lately. */
const ADMISSIBLE = `
  SELECT i.instance_id, i.deployment_id, i.node_id
  FROM fleet.application_instances i
  JOIN fleet.fleet_nodes n USING (node_id)
  JOIN telemetry.scheduler s ON s.id = $1
  JOIN telemetry.node_liveness l USING (node_id)
  WHERE i.status = 'reserved' AND n.status = 'active' AND s.heard_ms - l.heard_ms <= $2
    AND i.instance_id <> ALL($3::text[])
  ORDER BY i.placed_at, i.instance_id LIMIT $4`;

interface Admissible {
  readonly instance_id: string;
  readonly deployment_id: string;
  readonly node_id: string;
}

/** Instances whose node is drained before they were begun, or that have waited too long for it. */
const STUCK = `
  SELECT i.instance_id
  FROM fleet.application_instances i
  JOIN fleet.fleet_nodes n USING (node_id)
  LEFT JOIN fleet.jobs j ON j.job_id = i.job_id
  WHERE ((i.status = 'reserved' AND (n.status = 'draining' OR i.placed_at <= clock_timestamp() - $1 * interval '1 millisecond'))
     OR (i.status = 'deploying' AND n.status = 'draining' AND j.status = 'queued'))
    AND i.instance_id <> ALL($2::text[])
  ORDER BY i.placed_at, i.instance_id LIMIT $3`;

/** Hands instances that have a node to it, once it has shown that it is there, and as far as its queue has room. */
export function admitNetworks(pool: pg.Pool, led: Led, page: number): Promise<PassReport> {
  return inPages<Admissible>(
    page,
    async (seen, limit) => {
      const values = [SCHEDULER, FRESH_MS, seen, limit];
      return (await pool.query<Admissible>({ name: 'admissible_instances', text: ADMISSIBLE, values })).rows;
    },
    ({ instance_id }) => instance_id,
    (rows) => admitPage(pool, led, rows),
  );
}

async function admitPage(pool: pg.Pool, led: Led, rows: readonly Admissible[]): Promise<PassReport> {
  const nodeIds = rows.map(({ node_id }) => node_id);
  const queues = await NodeQueues.read(pool, nodeIds);
  const view = new RowView(pool);
  const loaded = await Promise.all(
    rows.map(async ({ instance_id, deployment_id, node_id }) => ({
      instance_id,
      node_id,
      instance: await view.get('application_instances', instance_id),
      deployment: await view.get('deployments', deployment_id),
    })),
  );
  return giveMade(led, admitNetwork, loaded, ({ instance_id, node_id, instance, deployment }) =>
    instance !== undefined && deployment !== undefined && queues.take(node_id)
      ? { instance_id, job: ensureApplicationJob(randomUUID(), deployment, instance, EPOCH) }
      : undefined,
  );
}

/** Puts instances back that will not be begun where they are. */
export function unplaceInstances(pool: pg.Pool, led: Led, page: number): Promise<PassReport> {
  return inPages<{ instance_id: string }>(
    page,
    async (seen, limit) => {
      const values = [ADMISSION_TIMEOUT_MS, seen, limit];
      return (await pool.query<{ instance_id: string }>({ name: 'stuck_instances', text: STUCK, values })).rows;
    },
    ({ instance_id }) => instance_id,
    (rows) => giveAll(led, unplaceInstance, rows),
  );
}
