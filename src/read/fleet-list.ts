import { lastSeenAt, type NodeLiveness, type NodeState } from '../domain/node/state.ts';
import type { FleetView, NodeFilter, ViewMoment } from './fleet-view.ts';

/** A node as the list shows it. In the past `liveness` is null and `lastSeenAt` is unknown. */
export interface ListedNode {
  readonly node: NodeState;
  readonly liveness: NodeLiveness | null;
  /** When the node was last heard (ms), the later of telemetry and enrolment. */
  readonly lastSeenAt: number | null;
}

/** The nodes of a view, in the order of pool and name. */
export interface FleetList {
  readonly moment: ViewMoment;
  readonly live: boolean;
  readonly nodes: readonly ListedNode[];
}

/** Reads the fleet's nodes and, for the present, when each was last heard. */
export async function listFleet(view: FleetView, filter: NodeFilter): Promise<FleetList> {
  const nodes = await withLiveness(view, await view.nodes(filter));
  return { moment: view.moment, live: view.telemetry !== null, nodes };
}

/** Adds to nodes when each was last heard. */
export async function withLiveness({ telemetry }: FleetView, nodes: readonly NodeState[]): Promise<ListedNode[]> {
  if (telemetry === null) return nodes.map((node) => ({ node, liveness: null, lastSeenAt: null }));
  const liveness = await telemetry.liveness(nodes.map(({ node_id }) => node_id));
  return nodes.map((node) => {
    const heard = liveness.get(node.node_id);
    return { node, liveness: heard ?? null, lastSeenAt: lastSeenAt(node, heard) };
  });
}
