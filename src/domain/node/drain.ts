import type { AllocationState } from '../allocation/state.ts';
import { append, type Decision, type DecisionTime, nothing, refuse, replying } from '../decision.ts';
import type { InstanceState } from '../deployment/state.ts';
import type { EventData } from '../event/catalogue.ts';
import { isInService } from '../ingress/publish.ts';
import type { RouteState } from '../ingress/state.ts';
import type { JobState } from '../job/state.ts';
import { nodeStream } from '../stream.ts';
import type { NodeState, NodeStatus } from './state.ts';

/** A node that is to take no more work. With `migrate` its services are replaced elsewhere first, so many at once. */
export type StartDrain = EventData<'node_drain_started'>;

const OBSTACLES: Readonly<
  Record<NodeStatus, 'node_not_active' | 'node_lost' | 'node_revoked' | 'node_retired' | undefined>
> = {
  provisioning: 'node_not_active',
  active: undefined,
  unhealthy: undefined,
  draining: undefined,
  offline: 'node_not_active',
  lost: 'node_lost',
  revoked: 'node_revoked',
  retired: 'node_retired',
};

/**
 * Begins a drain: no new work is placed on the node, what it has goes on. Asked for in another way while it drains, the drain goes on in
 * that way. The same again is nothing new. Refuses: node_unknown, node_not_active, node_lost, node_revoked, node_retired.
 */
export function startDrain(command: StartDrain, node: NodeState | undefined): Decision {
  const { node_id, migrate, max_in_flight, deadline_at } = command;
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  const code = OBSTACLES[node.status];
  if (code !== undefined) return refuse(code, { node_id, status: node.status });
  const { drain } = node;
  const same = drain?.migrate === migrate && drain.max_in_flight === max_in_flight && drain.deadline_at === deadline_at;
  if (node.status === 'draining' && same) return nothing();
  return append(nodeStream(node_id), { type: 'node_drain_started', data: command });
}

/** What the end of a drain is decided on: instances on the node, and those that replace some of them already. */
export interface DrainState {
  readonly node: NodeState | undefined;
  readonly instances: readonly InstanceState[];
  readonly successors: readonly (InstanceState | undefined)[];
}

/**
 * Takes a drain back, as long as nothing has moved. Not draining: nothing new for an active node. Refuses: node_unknown,
 * node_not_draining, drain_has_moved.
 */
export function cancelDrain(
  { node_id }: { readonly node_id: string },
  { node, instances, successors }: DrainState,
): Decision {
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.status === 'active') return nothing();
  if (node.status !== 'draining') return refuse('node_not_draining', { node_id, status: node.status });
  const moved = instances.find((instance, i) => instance.status === 'draining' || successors[i] !== undefined);
  if (moved !== undefined) return refuse('drain_has_moved', { node_id, instance_id: moved.instance_id });
  return append(nodeStream(node_id), { type: 'node_drain_cancelled', data: { node_id } });
}

/** An event names no more. */
const MOST_NAMED = 500;

/** Says once that a drain's deadline has passed, and which instances are still there. */
export function noteOverdueDrain(
  { node_id }: { readonly node_id: string },
  { node, instances }: Pick<DrainState, 'node' | 'instances'>,
  { now }: DecisionTime,
): Decision {
  const { status, drain } = node ?? {};
  if (status !== 'draining' || !drain || drain.deadline_at === null) return nothing();
  if (drain.deadline_at > now || drain.overdue_at !== null || instances.length === 0) return nothing();
  const blocking_instance_ids = instances.slice(0, MOST_NAMED).map(({ instance_id }) => instance_id);
  return append(nodeStream(node_id), { type: 'node_drain_overdue', data: { node_id, blocking_instance_ids } });
}

/** What a node still has: what is held of it, the jobs that it works on, the hostnames that it serves. */
export interface Occupancy {
  readonly node: NodeState | undefined;
  readonly allocations: readonly AllocationState[];
  readonly leased: readonly JobState[];
  readonly routes: readonly RouteState[];
}

/**
 * Why a node cannot go yet: something is held of it, it works on something, or it serves a hostname. A host that is gone already serves
 * none, whatever the routes say. Undefined when it is empty.
 */
export function refuseBusy({ node, allocations, leased, routes }: Occupancy): Decision | undefined {
  const served = isInService(node) ? routes.length : 0;
  if (allocations.length + leased.length + served === 0) return undefined;
  return refuse('node_busy', {
    node_id: node?.node_id ?? '',
    allocations: allocations.length,
    leases: leased.length,
    hostnames: served,
  });
}

/**
 * An operator says that a drained node is switched off on purpose: it is not waited for any more, and can only be decommissioned. Repeated:
 * nothing new. Refuses: node_unknown, node_not_draining, node_busy.
 */
export function takeOffline({ node_id }: { readonly node_id: string }, occupancy: Occupancy): Decision {
  const { node } = occupancy;
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.status === 'offline') return nothing();
  if (node.status !== 'draining') return refuse('node_not_draining', { node_id, status: node.status });
  return (
    refuseBusy(occupancy) ??
    replying(append(nodeStream(node_id), { type: 'node_taken_offline', data: { node_id } }), { node_id })
  );
}

/** Whether a node is one that coordinates the management mesh, which is never given up by itself. Repeated: nothing new. Refuses: node_unknown. */
export function setMeshCoordinator(
  { node_id, coordinator }: EventData<'node_mesh_coordinator_set'>,
  node: NodeState | undefined,
): Decision {
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.mesh_coordinator === coordinator) return nothing();
  return append(nodeStream(node_id), { type: 'node_mesh_coordinator_set', data: { node_id, coordinator } });
}
