import type pg from 'pg';
import { migrateInstanceCommand, noteOverdueDrainCommand } from '../../commands/node-exit.ts';
import { underTerm } from '../../commands/term.ts';
import { giveAll, type Led, type PassReport } from '../pass.ts';
import { inPages } from './pages.ts';

const migrateInstance = underTerm(migrateInstanceCommand);
const noteOverdueDrain = underTerm(noteOverdueDrainCommand);

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
  WHERE n.status = 'draining' AND (n.drain ->> 'migrate')::boolean AND m.instance_id <> ALL($1::text[])
  ORDER BY m.instance_id LIMIT $2`;

const OVERDUE = `
  SELECT node_id FROM fleet.fleet_nodes
  WHERE status = 'draining' AND drain -> 'overdue_at' = 'null' AND drain -> 'deadline_at' <> 'null'
    AND (drain ->> 'deadline_at')::numeric <= extract(epoch FROM clock_timestamp()) * 1000
    AND node_id <> ALL($1::text[])
  ORDER BY node_id LIMIT $2`;

/** Moves services away from nodes that are drained with migration, a few at once. */
export function migrateInstances(pool: pg.Pool, led: Led, page: number): Promise<PassReport> {
  return inPages<{ instance_id: string }>(
    page,
    async (seen, limit) => {
      const values = [seen, limit];
      return (await pool.query<{ instance_id: string }>({ name: 'migratable_instances', text: MIGRATABLE, values }))
        .rows;
    },
    ({ instance_id }) => instance_id,
    (rows) => giveAll(led, migrateInstance, rows),
  );
}

/** Says of drains whose deadline has passed what still blocks them. */
export function noteOverdueDrains(pool: pg.Pool, led: Led, page: number): Promise<PassReport> {
  return inPages<{ node_id: string }>(
    page,
    async (seen, limit) => {
      const values = [seen, limit];
      return (await pool.query<{ node_id: string }>({ name: 'overdue_drains', text: OVERDUE, values })).rows;
    },
    ({ node_id }) => node_id,
    (rows) => giveAll(led, noteOverdueDrain, rows),
  );
}
