import type { AllocationState } from '../allocation/state.ts';
import type { DatabaseState } from '../database/state.ts';
import { nextInstanceId } from '../deployment/instance-id.ts';
import type { DeploymentState, InstanceState } from '../deployment/state.ts';
import type { FleetEvent, NewEvent } from '../event/catalogue.ts';
import type { RouteState } from '../ingress/state.ts';
import type { JobState } from '../job/state.ts';
import { databaseStream, deploymentStream } from '../stream.ts';
import type { Reclaimed } from './events.ts';
import type { NodeState } from './state.ts';

/** Everything that a node has: what it would take along. Deployments are those of its instances, routes and builds, by id. */
export interface Holdings {
  /** Queued or leased jobs that are for the node, and those of its pool that it holds. */
  readonly jobs: readonly JobState[];
  /** Instances on it that are not over. */
  readonly instances: readonly InstanceState[];
  /** Instances that replace one of those already, by the id of the one they replace. */
  readonly successors: ReadonlyMap<string, InstanceState>;
  /** What is held of it. */
  readonly allocations: readonly AllocationState[];
  /** Databases on it that are not over. */
  readonly databases: readonly DatabaseState[];
  /** Routes that it was asked to publish. */
  readonly publishing: readonly RouteState[];
  readonly deployments: ReadonlyMap<string, DeploymentState>;
}

/** What is taken from a node, for the event that takes it, and the events that follow from it. */
export interface Reclamation {
  readonly taken: Reclaimed;
  readonly follow: readonly NewEvent[];
}

/** Deployments that go on: what they lose is replaced. */
const GOES_ON = ['building', 'deploying', 'live', 'degraded'] as const satisfies readonly DeploymentState['status'][];

/**
 * Takes everything from a node that will not come back (requirement, Lost nodes): jobs are fenced and never retargeted; instances that
 * were started are lost for good, those that only had a place wait for another; what they held is free again, subnet slots are not;
 * each lost instance of a deployment that goes on is replaced one generation later, unless it is replaced already; a build that was not
 * published fails its deployment; a route that was being published fails; databases stay with what they hold.
 */
export function reclaim(node: NodeState, holdings: Holdings, cause: 'node_lost' | 'node_revoked'): Reclamation {
  const lost = holdings.instances.filter(({ status }) => status !== 'reserved');
  const unplaced = holdings.instances.filter(({ status }) => status === 'reserved');
  const failing = failedBuilds(holdings);
  const replaced = lost.filter((instance) => isReplaced(instance, holdings, failing));
  const stranded = holdings.databases.filter(({ status }) => status !== 'stranded');
  const taken: Reclaimed = {
    fenced_jobs: holdings.jobs.map(({ job_id, kind }) => ({ job_id, kind })),
    lost_instance_ids: lost.map(({ instance_id }) => instance_id),
    unplaced_instance_ids: unplaced.map(({ instance_id }) => instance_id),
    replacement_instance_ids: replaced.map(nextInstanceId),
    released_allocation_ids: holdings.allocations
      .filter(({ kind }) => kind !== 'database')
      .map(({ allocation_id }) => allocation_id),
    stranded_database_ids: stranded.map(({ database_id }) => database_id),
  };
  return {
    taken,
    follow: [
      ...replaced.map((instance) => inDeployment(instance, replacementOf(instance, cause))),
      ...holdings.publishing.map((route) => inDeployment(route, failedRoute(route))),
      ...failing.map((deployment) => inDeployment(deployment, failedBuild(deployment))),
      ...stranded.map(({ database_id }) => ({
        stream: databaseStream(database_id),
        event: strandedDatabase(database_id, node.node_id),
      })),
    ],
  };
}

/** Deployments whose artifact was being built by a job that is fenced now. */
function failedBuilds({ jobs, deployments }: Holdings): DeploymentState[] {
  const building = new Set(jobs.flatMap(({ kind, job_id }) => (kind === 'build' ? [job_id] : [])));
  return [...deployments.values()].filter(
    ({ status, build_job_id }) => status === 'building' && build_job_id !== null && building.has(build_job_id),
  );
}

function isReplaced(
  instance: InstanceState,
  { successors, deployments }: Holdings,
  failing: readonly DeploymentState[],
): boolean {
  const deployment = deployments.get(instance.deployment_id);
  const goesOn = GOES_ON.some((status) => status === deployment?.status) && !failing.some((one) => one === deployment);
  return goesOn && !successors.has(instance.instance_id);
}

function replacementOf(instance: InstanceState, cause: 'node_lost' | 'node_revoked'): FleetEvent {
  const { deployment_id, role, slot, generation, instance_id } = instance;
  return {
    type: 'instance_replacement_queued',
    data: {
      deployment_id,
      instance_id: nextInstanceId(instance),
      role,
      slot,
      generation: generation + 1,
      replaces_instance_id: instance_id,
      cause,
    },
  };
}

function failedRoute({ deployment_id, hostname, generation, node_id, failures, relocation }: RouteState): FleetEvent {
  return {
    type: 'ingress_route_failed',
    // The host is gone, not the route's fault: no attempt at a relocation is used up by it.
    data: { deployment_id, hostname, generation, node_id, reason: 'node_lost', failures: relocation ? failures : 0 },
  };
}

function failedBuild({ deployment_id }: DeploymentState): FleetEvent {
  return { type: 'deployment_failed', data: { deployment_id, reason: 'build_failed', code: 'node_lost' } };
}

function strandedDatabase(database_id: string, node_id: string): FleetEvent {
  return { type: 'database_instance_stranded', data: { database_id, node_id } };
}

function inDeployment({ deployment_id }: { readonly deployment_id: string }, event: FleetEvent): NewEvent {
  return { stream: deploymentStream(deployment_id), event };
}
