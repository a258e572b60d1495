import { append, type Decision, following, nothing, refuse } from '../decision.ts';
import type { LossHoldState } from '../pool/state.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import { silentMs } from '../silence.ts';
import { nodeStream } from '../stream.ts';
import { type Holdings, reclaim } from './reclaim.ts';
import type { NodeLiveness, NodeState, NodeStatus } from './state.ts';

/** Asks whether a node has been silent for too long: ms by the clock of silence. */
export interface SweepNode {
  readonly node_id: string;
  readonly unhealthy_after_ms: number;
  readonly lost_after_ms: number;
}

/** What a sweep is decided on. */
export interface SweepState {
  readonly node: NodeState | undefined;
  readonly liveness: NodeLiveness | undefined;
  readonly scheduler: SchedulerState | undefined;
  /** Whether nodes of its pool are given up, and whether any node is. */
  readonly hold: LossHoldState | undefined;
  readonly freeze: LossHoldState | undefined;
  /** Read for a node that {@link isLossDue} alone. */
  readonly holdings: Holdings | undefined;
}

/** Nodes that are waited for: one of another status has nothing to be given up, or is switched off on purpose. */
const WAITED_FOR = ['active', 'unhealthy', 'draining'] as const satisfies readonly NodeStatus[];

/** Whether a node is one that has to be heard from. */
export function isWaitedFor({ status }: Pick<NodeState, 'status'>): boolean {
  return WAITED_FOR.some((one) => one === status);
}

/** Whether a node has been silent for so long that it is given up, if nothing stands against it. Mesh coordinators never are. */
export function isLossDue(
  { lost_after_ms }: Pick<SweepNode, 'lost_after_ms'>,
  { node, liveness, scheduler }: Pick<SweepState, 'node' | 'liveness' | 'scheduler'>,
): boolean {
  if (node === undefined || node.mesh_coordinator || !isWaitedFor(node)) return false;
  return (silentMs(liveness, scheduler) ?? 0) >= lost_after_ms;
}

/**
 * Gives a node up that has been silent for too long, with everything it has (requirement, Lost nodes); calls an active one unhealthy that
 * has been silent for long: it keeps what it has and gets nothing new. One of which nothing is known is not silent. Refuses to give up
 * while its pool is held (losses_held) or an operator has frozen it (losses_frozen).
 */
export function sweepNode(command: SweepNode, state: SweepState): Decision {
  const { node, liveness, scheduler, holdings } = state;
  const silent_ms = silentMs(liveness, scheduler);
  if (node === undefined || silent_ms === undefined) return nothing();
  const { node_id } = node;
  const kept = isLossDue(command, state) ? keptBack(node, state) : nothing();
  if (kept === undefined && holdings !== undefined) {
    const { taken, follow } = reclaim(node, holdings, 'node_lost');
    return following(
      append(nodeStream(node_id), { type: 'node_lost', data: { node_id, silent_ms, ...taken } }),
      follow,
    );
  }
  if (node.status === 'active' && silent_ms >= command.unhealthy_after_ms) {
    return append(nodeStream(node_id), { type: 'node_became_unhealthy', data: { node_id, silent_ms } });
  }
  return kept ?? nothing();
}

/** Why a node is not given up although it is time; undefined when nothing stands against it. */
function keptBack({ node_id, pool }: NodeState, { hold, freeze }: SweepState): Decision | undefined {
  if (typeof freeze?.held_at === 'number') return refuse('losses_frozen', { node_id });
  if (typeof hold?.held_at !== 'number') return undefined;
  return refuse('losses_held', { node_id, pool, silent: hold.silent_node_ids.length });
}
