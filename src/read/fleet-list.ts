import { sumOf, type Used } from '../domain/allocation/state.ts';
import { lastSeenAt, type NodeLiveness, type NodeState } from '../domain/node/state.ts';
import { activeAllocationsOfNode } from '../transactor/finders.ts';
import type { FleetView, NodeFilter, ViewMoment } from './fleet-view.ts';
import { type Losses, readLosses } from './losses.ts';
import { type ReclamationDetails, readReclamation } from './reclamation.ts';

const NOTHING: Used = { cpu_millis: 0, memory_mb: 0, disk_gb: 0 };

/** A node as the list shows it. In the past `liveness` is null and `lastSeenAt` is unknown. */
export interface ListedNode {
  readonly node: NodeState;
  readonly liveness: NodeLiveness | null;
  /** When the node was last heard (ms), the later of telemetry and enrolment. */
  readonly lastSeenAt: number | null;
  /** What is held of it. */
  readonly used: Used;
}

/** The nodes of a view, in the order of pool and name. */
export interface FleetList {
  readonly moment: ViewMoment;
  readonly live: boolean;
  readonly nodes: readonly ListedNode[];
  /** What became of nodes that were lost or revoked and are not retired yet. */
  readonly reclamations: readonly ReclamationDetails[];
  readonly losses: Losses;
}

/** Reads the fleet's nodes with what is used of them, what was lost, and for the present when each was last heard. */
export async function listFleet(view: FleetView, filter: NodeFilter): Promise<FleetList> {
  const found = await view.nodes(filter);
  const gone = found.filter(({ status }) => status === 'lost' || status === 'revoked');
  const [nodes, reclamations, losses] = await Promise.all([
    withLiveness(view, found),
    Promise.all(gone.map((node) => readReclamation(view, node))),
    readLosses(view),
  ]);
  const live = view.telemetry !== null;
  return { moment: view.moment, live, nodes, reclamations: reclamations.flatMap((one) => one ?? []), losses };
}

/** Adds to nodes what is used of each, and when it was last heard. */
export async function withLiveness({ telemetry, rows }: FleetView, nodes: readonly NodeState[]): Promise<ListedNode[]> {
  const [liveness, used] = await Promise.all([
    telemetry?.liveness(nodes.map(({ node_id }) => node_id)),
    Promise.all(nodes.map(async ({ node_id }) => sumOf(await rows.find(activeAllocationsOfNode, { node_id })))),
  ]);
  return nodes.map((node, i) => {
    const heard = liveness?.get(node.node_id);
    return {
      node,
      liveness: heard ?? null,
      lastSeenAt: liveness === undefined ? null : lastSeenAt(node, heard),
      used: used[i] ?? NOTHING,
    };
  });
}
