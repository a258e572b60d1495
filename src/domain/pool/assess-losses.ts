import { append, type Decision, type DecisionTime, nothing } from '../decision.ts';
import { POOLS, type Pool } from '../fields.ts';
import type { NodeLiveness, NodeState } from '../node/state.ts';
import { isWaitedFor } from '../node/sweep.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import { silentMs } from '../silence.ts';
import { poolStream } from '../stream.ts';
import type { LossHoldState } from './state.ts';

/** Asks whether so many nodes of a pool are silent together that none is to be given up. */
export interface AssessLosses {
  readonly pool: Pool;
  /** From when on a node counts as silent, ms. */
  readonly unhealthy_after_ms: number;
}

/** What an assessment is decided on: every node of the fleet that is waited for or was lost, and what is known of each pool. */
export interface LossState {
  readonly nodes: readonly NodeState[];
  readonly liveness: ReadonlyMap<string, NodeLiveness>;
  readonly scheduler: SchedulerState | undefined;
  readonly holds: ReadonlyMap<Pool, LossHoldState>;
}

/** A lost node that is still in the fleet stands for an absent one for so long. */
const RECENT_LOSS_MS = 3_600_000;
/** An event names no more. */
const MOST_NAMED = 5_000;

/** How a node counts: silent now, lost a short while ago, or present. */
interface Standing {
  readonly node: NodeState;
  readonly is: 'heard' | 'silent' | 'lost';
}

/**
 * Holds the nodes of a pool back from being lost when so many are silent together that it is more likely the way to them that is broken:
 * more than half of the pool; every node of the fleet; a pool of one together with all of another pool. What was lost within the hour
 * counts as silent, so that a pool which falls away one by one is held too. Ends the hold when no more than a quarter is silent, or one node. Nodes
 * that an operator released do not count for as long as they are silent.
 */
export function assessLosses(command: AssessLosses, state: LossState, time: DecisionTime): Decision {
  const { pool } = command;
  const hold = state.holds.get(pool);
  const counted = standings(command, state, time);
  const mine = counted.filter(({ node }) => node.pool === pool);
  const silent = mine.filter(({ is }) => is === 'silent').map(({ node }) => node.node_id);
  const together = silent.length > 0 && areSilentTogether(pool, counted);
  if (typeof hold?.held_at !== 'number') {
    if (!together) return forgetReturned(command, state);
    const silent_node_ids = silent.slice(0, MOST_NAMED);
    return append(poolStream(pool), {
      type: 'node_loss_held',
      data: { pool, silent_node_ids, pool_size: mine.length },
    });
  }
  // A single one is what a pool may always lose.
  if (together || silent.length > Math.max(1, mine.length / 4)) return nothing();
  return append(poolStream(pool), { type: 'node_loss_released', data: { pool, cause: 'recovered', node_ids: [] } });
}

/** Nodes of a pool that are silent now. */
export function silentNodes({ pool, unhealthy_after_ms }: AssessLosses, state: LossState): NodeState[] {
  return state.nodes.filter((node) => node.pool === pool && isSilent(node, unhealthy_after_ms, state));
}

function isSilent(node: NodeState, unhealthyAfterMs: number, { liveness, scheduler }: LossState): boolean {
  return isWaitedFor(node) && (silentMs(liveness.get(node.node_id), scheduler) ?? 0) >= unhealthyAfterMs;
}

function standings({ unhealthy_after_ms }: AssessLosses, state: LossState, { at }: DecisionTime): Standing[] {
  return state.nodes.flatMap((node): Standing[] => {
    const is = standing(node, unhealthy_after_ms, state, at);
    const released = state.holds.get(node.pool)?.released_node_ids.includes(node.node_id) === true;
    return is === undefined || (released && is !== 'heard') ? [] : [{ node, is }];
  });
}

function standing(node: NodeState, unhealthyAfterMs: number, state: LossState, at: number): Standing['is'] | undefined {
  if (isWaitedFor(node)) return isSilent(node, unhealthyAfterMs, state) ? 'silent' : 'heard';
  const lostAt = node.status === 'lost' ? node.reclamation?.at : undefined;
  return lostAt !== undefined && at - lostAt < RECENT_LOSS_MS ? 'lost' : undefined;
}

function areSilentTogether(pool: Pool, counted: readonly Standing[]): boolean {
  const of = (one: Pool) => counted.filter(({ node }) => node.pool === one);
  const mine = of(pool);
  if (mine.length >= 2) {
    const away = mine.filter(({ is }) => is !== 'heard').length;
    if (away * 2 > mine.length) return true;
  }
  if (counted.length > 1 && isAllSilent(counted)) return true;
  return mine.length === 1 && isAllSilent(mine) && POOLS.some((other) => other !== pool && isAllSilent(of(other)));
}

function isAllSilent(nodes: readonly Standing[]): boolean {
  return nodes.length > 0 && nodes.every(({ is }) => is !== 'heard');
}

/** A released node that is heard again is a node like any other from then on. */
function forgetReturned({ pool, unhealthy_after_ms }: AssessLosses, state: LossState): Decision {
  const released = state.holds.get(pool)?.released_node_ids ?? [];
  const returned = state.nodes.filter(
    (node) => released.includes(node.node_id) && isWaitedFor(node) && !isSilent(node, unhealthy_after_ms, state),
  );
  if (returned.length === 0) return nothing();
  const node_ids = released.filter((id) => returned.every(({ node_id }) => node_id !== id));
  return append(poolStream(pool), { type: 'node_loss_released', data: { pool, cause: 'recovered', node_ids } });
}
