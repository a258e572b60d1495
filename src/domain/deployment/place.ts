import { type AllocationState, sumOf } from '../allocation/state.ts';
import { append, type Decision, refuse } from '../decision.ts';
import { MOST_DATABASES, MOST_INSTANCES } from '../node/limits.ts';
import type { NodeLiveness, NodeState } from '../node/state.ts';
import type { Refusal } from '../result.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import { isFresh } from '../silence.ts';
import { deploymentStream } from '../stream.ts';
import type { Role } from './events.ts';
import type { DeploymentState, InstanceState } from './state.ts';

/** Slots of a node's subnet; none is ever used twice. */
const SUBNET_SLOTS = 65_536;

/** What a placement is decided on. `unfinished` are the deployment's instances that have not run to their end. */
export interface PlaceState {
  readonly instance: InstanceState | undefined;
  readonly deployment: DeploymentState | undefined;
  readonly node: NodeState | undefined;
  readonly liveness: NodeLiveness | undefined;
  readonly scheduler: SchedulerState | undefined;
  readonly allocations: readonly AllocationState[];
  readonly unfinished: readonly InstanceState[];
}

/** The role of an instance; undefined where the deployment has none of that name. */
export function roleOf(deployment: DeploymentState, { role }: Pick<InstanceState, 'role'>): Role | undefined {
  return deployment.roles.find((one) => one.role === role);
}

/** Deployments whose instances may be placed. */
const PLACEABLE = ['deploying', 'live', 'degraded'] as const satisfies readonly DeploymentState['status'][];

/**
 * Gives an instance that waits a place: capacity of a node, and the next slot of its subnet. The node has to be active, admitted and
 * fresh, of the deployment's pool and regions, a member where the environment is sealed, and to have room. What releases the deployment
 * comes before everything else. Refuses: instance_not_waiting, deployment_ended, release_not_done, node_unknown, node_not_schedulable,
 * node_not_eligible, node_not_member, node_full, capacity_unknown, subnet_slots_used_up.
 */
export function placeInstance(
  { instance_id, node_id }: { readonly instance_id: string; readonly node_id: string },
  state: PlaceState,
): Decision {
  const { instance, deployment, node } = state;
  if (instance?.status !== 'pending_placement' || deployment === undefined) {
    return refuse('instance_not_waiting', { instance_id, status: instance?.status ?? 'unknown' });
  }
  const role = roleOf(deployment, instance);
  if (role === undefined || !PLACEABLE.some((status) => status === deployment.status)) {
    return refuse('deployment_ended', { name: deployment.name, status: deployment.status });
  }
  if (role.run !== 'release' && state.unfinished.some((one) => roleOf(deployment, one)?.run === 'release')) {
    return refuse('release_not_done', { instance_id });
  }
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  const obstacle = obstacleTo(role, deployment, node, state);
  if (obstacle !== undefined) return { refusal: obstacle };
  const { cpu_millis, memory_mb, disk_gb } = role;
  const { deployment_id } = deployment;
  return append(deploymentStream(deployment_id), {
    type: 'instance_placed',
    data: {
      deployment_id,
      instance_id,
      node_id,
      cpu_millis,
      memory_mb,
      disk_gb,
      subnet_slot: node.subnet_slots_used,
    },
  });
}

function obstacleTo(
  role: Role,
  { pool, regions, sealed_member_node_ids: members }: DeploymentState,
  node: NodeState,
  { liveness, scheduler, allocations }: PlaceState,
): Refusal | undefined {
  const { node_id } = node;
  if (node.status !== 'active' || !node.schedulable) return { code: 'node_not_schedulable', details: { node_id } };
  if (!isFresh(liveness, scheduler)) return { code: 'node_not_schedulable', details: { node_id } };
  if (node.pool !== pool || !regions.includes(node.region)) return { code: 'node_not_eligible', details: { node_id } };
  if (members !== null && !members.includes(node_id)) return { code: 'node_not_member', details: { node_id } };
  if (node.cpu_millis === null || node.memory_mb === null || node.disk_gb === null) {
    return { code: 'capacity_unknown', details: { node_id } };
  }
  const lacking = lackOf('deployment_role', role, allocations, {
    cpu_millis: node.cpu_millis,
    memory_mb: node.memory_mb,
    disk_gb: node.disk_gb,
  });
  if (lacking !== undefined) return { code: 'node_full', details: { node_id, lacking } };
  if (node.subnet_slots_used >= SUBNET_SLOTS) return { code: 'subnet_slots_used_up', details: { node_id } };
  return undefined;
}

type Sizes = Pick<Role, 'cpu_millis' | 'memory_mb' | 'disk_gb'>;

const MOST_OF = { deployment_role: MOST_INSTANCES, database: MOST_DATABASES } as const;

/**
 * What a node has too little of for one more of a kind; undefined where there is room. Allocations never exceed capacity (requirement,
 * Capacity).
 */
export function lackOf(
  kind: keyof typeof MOST_OF,
  wanted: Sizes,
  allocations: readonly AllocationState[],
  capacity: Sizes,
): 'CPU' | 'memory' | 'disk' | 'places' | undefined {
  if (allocations.filter((one) => one.kind === kind).length >= MOST_OF[kind]) return 'places';
  const used = sumOf(allocations);
  if (used.cpu_millis + wanted.cpu_millis > capacity.cpu_millis) return 'CPU';
  if (used.memory_mb + wanted.memory_mb > capacity.memory_mb) return 'memory';
  if (used.disk_gb + wanted.disk_gb > capacity.disk_gb) return 'disk';
  return undefined;
}
