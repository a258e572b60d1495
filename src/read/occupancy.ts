import { sumOf, type Used } from '../domain/allocation/state.ts';
import type { DatabaseState } from '../domain/database/state.ts';
import type { InstanceState } from '../domain/deployment/state.ts';
import type { RouteState } from '../domain/ingress/state.ts';
import type { JobState } from '../domain/job/state.ts';
import type { NodeState } from '../domain/node/state.ts';
import {
  activeAllocationsOfNode,
  databasesOfNode,
  instancesOfNode,
  jobsLeasedTo,
  routesOfNode,
} from '../transactor/finders.ts';
import type { FleetView } from './fleet-view.ts';

/** What is on a node, and what would be missing without it. */
export interface NodeOccupancy {
  readonly node: NodeState;
  readonly instances: readonly InstanceState[];
  readonly allocations: number;
  readonly leased: readonly JobState[];
  readonly hostnames: readonly string[];
  readonly databases: readonly DatabaseState[];
  /** What other active nodes of its pool and region have left. */
  readonly leftInPool: Used & { readonly nodes: number };
}

/** Reads what is on a node. */
export async function readOccupancy(view: FleetView, node: NodeState): Promise<NodeOccupancy> {
  const { rows } = view;
  const { node_id, pool, region } = node;
  const [instances, allocations, leased, routes, databases, ofPool] = await Promise.all([
    rows.find(instancesOfNode, { node_id, statuses: ['reserved', 'deploying', 'ready', 'error', 'draining'] }),
    rows.find(activeAllocationsOfNode, { node_id }),
    rows.find(jobsLeasedTo, { node_id }),
    rows.find(routesOfNode, { node_id, statuses: ['active', 'publishing'] }),
    rows.find(databasesOfNode, { node_id, statuses: ['creating', 'ready', 'error', 'stranded'] }),
    view.nodes({ pool, status: 'active' }),
  ]);
  const others = ofPool.filter((one) => one.region === region && one.schedulable && one.node_id !== node_id);
  const left = await Promise.all(
    others.map(async (one) => {
      const used = sumOf(await rows.find(activeAllocationsOfNode, { node_id: one.node_id }));
      return {
        cpu_millis: (one.cpu_millis ?? 0) - used.cpu_millis,
        memory_mb: (one.memory_mb ?? 0) - used.memory_mb,
        disk_gb: (one.disk_gb ?? 0) - used.disk_gb,
      };
    }),
  );
  return {
    node,
    instances,
    allocations: allocations.length,
    leased,
    hostnames: hostnamesOf(routes),
    databases,
    leftInPool: { nodes: others.length, ...sumOf(left) },
  };
}

function hostnamesOf(routes: readonly RouteState[]): string[] {
  return [...new Set(routes.map(({ hostname }) => hostname))].sort();
}
