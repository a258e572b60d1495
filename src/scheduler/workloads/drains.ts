import type pg from 'pg';
import { migrateInstanceCommand, noteOverdueDrainCommand } from '../../commands/node-exit.ts';
import { underTerm } from '../../commands/term.ts';
import { giveAll, type Led, type PassReport } from '../pass.ts';

const migrateInstance = underTerm(migrateInstanceCommand);
const noteOverdueDrain = underTerm(noteOverdueDrainCommand);

const MOST = 1_000;

/** Services on nodes that are drained with migration and that nothing replaces yet, as many of each node as may be on their way. */
const MIGRATABLE = `
  SELECT m.instance_id FROM fleet.fleet_nodes n
  CROSS JOIN LATERAL (
    SELECT i.instance_id
    FROM fleet.application_instances i JOIN fleet.deployments d USING (deployment_id)
    WHERE i.node_id = n.node_id AND i.status = 'ready' AND d.status IN ('deploying', 'live', 'degraded')
      AND d.roles @> jsonb_build_array(jsonb_build_object('role', i.role, 'run', 'service'))
      AND NOT EXISTS (SELECT 1 FROM fleet.application_instances s WHERE s.replaces_instance_id = i.instance_id)
    ORDER BY i.instance_id LIMIT coalesce((n.drain ->> 'max_in_flight')::integer, 1)
  ) m
  WHERE n.status = 'draining' AND (n.drain ->> 'migrate')::boolean
  ORDER BY m.instance_id LIMIT ${MOST}`;

const OVERDUE = `
  SELECT node_id FROM fleet.fleet_nodes
  WHERE status = 'draining' AND drain -> 'overdue_at' = 'null' AND drain -> 'deadline_at' <> 'null'
    AND (drain ->> 'deadline_at')::numeric <= extract(epoch FROM clock_timestamp()) * 1000
  ORDER BY node_id LIMIT ${MOST}`;

/** Moves services away from nodes that are drained with migration, a few at once. */
export async function migrateInstances(pool: pg.Pool, led: Led): Promise<PassReport> {
  const { rows } = await pool.query<{ instance_id: string }>({ name: 'migratable_instances', text: MIGRATABLE });
  return giveAll(led, migrateInstance, rows);
}

/** Says of drains whose deadline has passed what still blocks them. */
export async function noteOverdueDrains(pool: pg.Pool, led: Led): Promise<PassReport> {
  const { rows } = await pool.query<{ node_id: string }>({ name: 'overdue_drains', text: OVERDUE });
  return giveAll(led, noteOverdueDrain, rows);
}
