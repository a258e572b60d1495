import type pg from 'pg';
import { placeInstanceCommand } from '../../commands/deployment.ts';
import { underTerm } from '../../commands/term.ts';
import { chooseNode, take, type Unplaceable } from '../../domain/deployment/choose-node.ts';
import { roleOf } from '../../domain/deployment/place.ts';
import { RowView } from '../../transactor/row-view.ts';
import { giveAll, type Led, type PassReport } from '../pass.ts';
import { findCandidates } from './find-candidates.ts';

const placeInstance = underTerm(placeInstanceCommand);

/** How many instances one pass places; the next pass goes on. */
const MOST = 1_000;

/** Instances that wait for a node, the oldest first. Those that wait for their deployment's release do not stand in front of others. */
const WAITING = `
  SELECT i.instance_id, i.deployment_id
  FROM fleet.application_instances i
  JOIN fleet.deployments d USING (deployment_id)
  WHERE i.status = 'pending_placement' AND d.status IN ('deploying', 'live', 'degraded')
    AND (
      d.roles @> jsonb_build_array(jsonb_build_object('role', i.role, 'run', 'release'))
      OR NOT EXISTS (
        SELECT 1 FROM fleet.application_instances r
        WHERE r.deployment_id = i.deployment_id AND r.status IN ('pending_placement', 'reserved', 'deploying', 'error')
          AND d.roles @> jsonb_build_array(jsonb_build_object('role', r.role, 'run', 'release'))
      )
    )
  ORDER BY i.requested_at, i.instance_id LIMIT ${MOST}`;

/** What a pass placed, and the deployments that have an instance for which there is no node. */
export interface Placed {
  readonly report: PassReport;
  readonly unplaceable: ReadonlyMap<string, Unplaceable>;
}

/** Gives every instance that waits a node, as far as there are nodes. All are chosen in memory, each seeing those before it. */
export async function placeInstances(pool: pg.Pool, led: Led): Promise<Placed> {
  const { rows: waiting } = await pool.query<{ instance_id: string; deployment_id: string }>({
    name: 'waiting_instances',
    text: WAITING,
  });
  if (waiting.length === 0) return { report: { done: 0, refused: [], failed: [] }, unplaceable: new Map() };
  const candidates = await findCandidates(pool, [...new Set(waiting.map(({ deployment_id }) => deployment_id))]);
  const view = new RowView(pool);
  const unplaceable = new Map<string, Unplaceable>();
  const commands = [];
  const loaded = waiting.map(({ instance_id, deployment_id }) =>
    Promise.all([view.get('application_instances', instance_id), view.get('deployments', deployment_id)]),
  );
  for (const [instance, deployment] of await Promise.all(loaded)) {
    const role = instance && deployment && roleOf(deployment, instance);
    if (instance === undefined || deployment === undefined || role === undefined) continue;
    const { deployment_id } = deployment;
    const chosen = chooseNode(role, deployment, candidates);
    if (typeof chosen === 'string') {
      unplaceable.set(deployment_id, chosen);
      continue;
    }
    take(role, deployment_id, chosen);
    commands.push({ instance_id: instance.instance_id, node_id: chosen.node_id });
  }
  return { report: await giveAll(led, placeInstance, commands), unplaceable };
}
