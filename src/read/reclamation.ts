import type { InstanceState } from '../domain/deployment/state.ts';
import type { NodeState, Reclamation } from '../domain/node/state.ts';
import type { FleetView } from './fleet-view.ts';

/** An instance that was lost with a node, and the one that fills its slot now, if it was replaced. */
export interface LostInstance {
  readonly instance: InstanceState;
  readonly deploymentName: string;
  /** The latest generation of the slot; undefined where the lost one was not replaced. */
  readonly successor: InstanceState | undefined;
}

/** What a loss came to, as far as it is known by now. */
export interface ReclamationDetails {
  readonly node: NodeState;
  readonly reclamation: Reclamation;
  readonly lost: readonly LostInstance[];
  readonly strandedDatabases: readonly {
    readonly database_id: string;
    readonly name: string;
    readonly held: boolean;
  }[];
}

/** The same in numbers. `queued` are replacements that do not run yet. */
export interface ReclamationSummary {
  readonly fenced_jobs: number;
  readonly lost_instances: number;
  readonly replacements_ready: number;
  readonly replacements_queued: number;
  readonly stranded_databases: number;
  /** Instances that the host has not said to be gone from it. */
  readonly uncleaned_instances: number;
}

/** What was taken from a lost or revoked node, and what became of it; undefined for one from which nothing was taken. */
export async function readReclamation(view: FleetView, node: NodeState): Promise<ReclamationDetails | undefined> {
  const { reclamation } = node;
  if (reclamation === null) return undefined;
  const [lost, databases] = await Promise.all([
    Promise.all(reclamation.lost_instance_ids.map((id) => lostInstance(view, id))),
    Promise.all(reclamation.stranded_database_ids.map((id) => view.rows.get('database_instances', id))),
  ]);
  return {
    node,
    reclamation,
    lost: lost.flatMap((one) => one ?? []),
    strandedDatabases: databases.flatMap((one) =>
      one === undefined ? [] : [{ database_id: one.database_id, name: one.name, held: one.status !== 'released' }],
    ),
  };
}

async function lostInstance(view: FleetView, id: string): Promise<LostInstance | undefined> {
  const instance = await view.rows.get('application_instances', id);
  if (instance === undefined) return undefined;
  const [deployment, successor] = await Promise.all([
    view.rows.get('deployments', instance.deployment_id),
    latestAfter(view, instance),
  ]);
  return { instance, deploymentName: deployment?.name ?? instance.deployment_id, successor };
}

/** The last of the generations that followed in the slot. */
async function latestAfter(view: FleetView, instance: InstanceState): Promise<InstanceState | undefined> {
  const { deployment_id, role, slot, generation } = instance;
  const next = await view.rows.get('application_instances', `${deployment_id}.${role}.${slot}.${generation + 1}`);
  if (next === undefined) return undefined;
  return (await latestAfter(view, next)) ?? next;
}

/** Sums a reclamation up. */
export function summarize({ reclamation, lost, strandedDatabases }: ReclamationDetails): ReclamationSummary {
  const successors = lost.flatMap(({ successor }) => successor ?? []);
  const ready = successors.filter(({ status }) => status === 'ready' || status === 'done').length;
  return {
    fenced_jobs: reclamation.fenced_jobs.length,
    lost_instances: reclamation.lost_instance_ids.length,
    replacements_ready: ready,
    replacements_queued: successors.filter(({ status }) => isOnItsWay(status)).length,
    stranded_databases: strandedDatabases.filter(({ held }) => held).length,
    uncleaned_instances: lost.filter(({ instance }) => instance.cleaned_at === null).length,
  };
}

function isOnItsWay(status: InstanceState['status']): boolean {
  return status === 'pending_placement' || status === 'reserved' || status === 'deploying';
}
