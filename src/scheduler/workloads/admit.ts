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
import { giveAll, type Led, type PassReport } from '../pass.ts';

const admitNetwork = underTerm(admitNetworkCommand);
const unplaceInstance = underTerm(unplaceInstanceCommand);

const MOST = 1_000;

/** Instances with a node that was heard lately. */
const ADMISSIBLE = `
  SELECT i.instance_id, i.deployment_id
  FROM fleet.application_instances i
  JOIN fleet.fleet_nodes n USING (node_id)
  JOIN telemetry.scheduler s ON s.id = $1
  JOIN telemetry.node_liveness l USING (node_id)
  WHERE i.status = 'reserved' AND n.status = 'active' AND s.heard_ms - l.heard_ms <= $2
  ORDER BY i.placed_at, i.instance_id LIMIT ${MOST}`;

/** Instances whose node is drained before they were begun, or that have waited too long for it. */
const STUCK = `
  SELECT i.instance_id
  FROM fleet.application_instances i
  JOIN fleet.fleet_nodes n USING (node_id)
  LEFT JOIN fleet.jobs j ON j.job_id = i.job_id
  WHERE (i.status = 'reserved' AND (n.status = 'draining' OR i.placed_at <= clock_timestamp() - $1 * interval '1 millisecond'))
     OR (i.status = 'deploying' AND n.status = 'draining' AND j.status = 'queued')
  ORDER BY i.placed_at, i.instance_id LIMIT ${MOST}`;

/** Hands instances that have a node to it, once it has shown that it is there. */
export async function admitNetworks(pool: pg.Pool, led: Led): Promise<PassReport> {
  const { rows } = await pool.query<{ instance_id: string; deployment_id: string }>({
    name: 'admissible_instances',
    text: ADMISSIBLE,
    values: [SCHEDULER, FRESH_MS],
  });
  const view = new RowView(pool);
  const loaded = rows.map(({ instance_id, deployment_id }) =>
    Promise.all([view.get('application_instances', instance_id), view.get('deployments', deployment_id)]),
  );
  const commands = (await Promise.all(loaded)).flatMap(([instance, deployment]) => {
    if (instance === undefined || deployment === undefined) return [];
    const { instance_id } = instance;
    return [{ instance_id, job: ensureApplicationJob(randomUUID(), deployment, instance, EPOCH) }];
  });
  return giveAll(led, admitNetwork, commands);
}

/** Puts instances back that will not be begun where they are. */
export async function unplaceInstances(pool: pg.Pool, led: Led): Promise<PassReport> {
  const { rows } = await pool.query<{ instance_id: string }>({
    name: 'stuck_instances',
    text: STUCK,
    values: [ADMISSION_TIMEOUT_MS],
  });
  return giveAll(led, unplaceInstance, rows);
}
