import type pg from 'pg';
import { placeInstanceCommand } from '../../commands/deployment.ts';
import { underTerm } from '../../commands/term.ts';
import { chooseNode, roleKey, take, type Unplaceable } from '../../domain/deployment/choose-node.ts';
import { roleOf } from '../../domain/deployment/place.ts';
import { RowView } from '../../transactor/row-view.ts';
import { giveAll, type Led, type PassReport } from '../pass.ts';
import { findCandidates } from './find-candidates.ts';
import { inPages } from './pages.ts';

const placeInstance = underTerm(placeInstanceCommand);

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
    AND i.instance_id <> ALL($1::text[])
  ORDER BY i.requested_at, i.instance_id LIMIT $2`;

interface Waiting {
  readonly instance_id: string;
  readonly deployment_id: string;
}

/** What a pass placed, and the deployments that have an instance for which there is no node. */
export interface Placed {
  readonly report: PassReport;
  readonly unplaceable: ReadonlyMap<string, Unplaceable>;
}

/** Gives every instance that waits a node, as far as there are nodes. Those of a page are chosen in memory, each seeing those before it. */
export async function placeInstances(pool: pg.Pool, led: Led, page: number): Promise<Placed> {
  const unplaceable = new Map<string, Unplaceable>();
  const report = await inPages<Waiting>(
    page,
    async (seen, limit) => {
      const values = [seen, limit];
      return (await pool.query<Waiting>({ name: 'waiting_instances', text: WAITING, values })).rows;
    },
    ({ instance_id }) => instance_id,
    async (waiting) => giveAll(led, placeInstance, await choose(pool, waiting, unplaceable)),
  );
  return { report, unplaceable };
}

/** The commands that place these instances; notes the deployments of those for which there is no node. */
async function choose(pool: pg.Pool, waiting: readonly Waiting[], unplaceable: Map<string, Unplaceable>) {
  const candidates = await findCandidates(pool, [...new Set(waiting.map(({ deployment_id }) => deployment_id))]);
  const view = new RowView(pool);
  /** There is no node for a role: then there is none for its next instance either, since nodes only fill up. */
  const hopeless = new Map<string, Unplaceable>();
  const commands = [];
  const loaded = waiting.map(({ instance_id, deployment_id }) =>
    Promise.all([view.get('application_instances', instance_id), view.get('deployments', deployment_id)]),
  );
  for (const [instance, deployment] of await Promise.all(loaded)) {
    const role = instance && deployment && roleOf(deployment, instance);
    if (instance === undefined || deployment === undefined || role === undefined) continue;
    const { deployment_id } = deployment;
    const key = roleKey(deployment_id, role.role);
    const chosen = hopeless.get(key) ?? chooseNode(role, deployment, candidates);
    if (typeof chosen === 'string') {
      hopeless.set(key, chosen);
      unplaceable.set(deployment_id, chosen);
      continue;
    }
    take(role, deployment_id, chosen);
    commands.push({ instance_id: instance.instance_id, node_id: chosen.node_id });
  }
  return commands;
}
