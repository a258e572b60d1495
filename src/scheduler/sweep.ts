import type pg from 'pg';
import { assessLossesCommand } from '../commands/loss.ts';
import { sweepNodeCommand } from '../commands/sweep.ts';
import { underTerm } from '../commands/term.ts';
import type { Pool } from '../domain/fields.ts';
import type { NodeStatus } from '../domain/node/state.ts';
import type { SweepNode } from '../domain/node/sweep.ts';
import { WHOLE_FLEET } from '../domain/pool/state.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import { giveAll, type Led, type PassReport } from './pass.ts';

const assessLosses = underTerm(assessLossesCommand);
const sweepNode = underTerm(sweepNodeCommand);

/** From when on a node is unhealthy, and from when on it is lost: ms by the clock of silence. */
export interface SilenceThresholds {
  readonly unhealthyAfterMs: number;
  readonly lostAfterMs: number;
}

/** A node that has been silent for longer than a healthy one may. */
export interface SilentNode {
  readonly node_id: string;
  readonly name: string;
  readonly pool: Pool;
  readonly status: NodeStatus;
  readonly mesh_coordinator: boolean;
  readonly silent_ms: number;
}

/** What became of a sweep: of pools that were assessed, and of nodes. */
export interface SweepReport {
  readonly pools: PassReport<{ readonly pool: Pool }>;
  readonly nodes: PassReport<SweepNode>;
}

/**
 * Nodes of which it is not known when they were heard (new ones, lost telemetry, a clock that was restored from before) count as heard
 * now: what is not known is no silence.
 */
const NOTE_UNHEARD = `
  INSERT INTO telemetry.node_liveness AS known (node_id, last_seen_at, heard_ms)
  SELECT n.node_id, coalesce(l.last_seen_at, n.enrolled_at, n.requested_at), s.heard_ms
  FROM fleet.fleet_nodes n
  JOIN telemetry.scheduler s ON s.id = $1
  LEFT JOIN telemetry.node_liveness l ON l.node_id = n.node_id
  WHERE n.status IN ('active', 'unhealthy', 'draining') AND (l.heard_ms IS NULL OR l.heard_ms > s.heard_ms)
  ORDER BY n.node_id
  ON CONFLICT (node_id) DO UPDATE SET heard_ms = excluded.heard_ms
  WHERE known.heard_ms IS NULL OR known.heard_ms > excluded.heard_ms`;

const SILENT = `
  SELECT n.node_id, n.name, n.pool, n.status, n.mesh_coordinator, s.heard_ms - l.heard_ms AS silent_ms
  FROM fleet.fleet_nodes n
  JOIN telemetry.scheduler s ON s.id = $1
  JOIN telemetry.node_liveness l ON l.node_id = n.node_id
  WHERE n.status IN ('active', 'unhealthy', 'draining') AND s.heard_ms - l.heard_ms >= $2
  ORDER BY n.pool, n.name`;

/** Pools that are held, or whose nodes an operator has released. */
const UNSETTLED = `
  SELECT scope AS pool FROM fleet.node_loss_holds
  WHERE scope <> $1 AND (held_at IS NOT NULL OR released_node_ids <> '[]')`;

/** The nodes that have been silent for longer than a healthy one may, in the order of pool and name. */
export async function findSilent(pool: pg.Pool, { unhealthyAfterMs }: SilenceThresholds): Promise<SilentNode[]> {
  const values = [SCHEDULER, unhealthyAfterMs];
  return (await pool.query<SilentNode>({ name: 'silent_nodes', text: SILENT, values })).rows;
}

/** The command that decides about a silent node, where there may be something to decide: undefined for one that stays as it is. */
export function sweepOf(
  { node_id, status, mesh_coordinator, silent_ms }: SilentNode,
  { unhealthyAfterMs, lostAfterMs }: SilenceThresholds,
): SweepNode | undefined {
  const mayBeLost = silent_ms >= lostAfterMs && !mesh_coordinator;
  if (status !== 'active' && !mayBeLost) return undefined;
  return { node_id, unhealthy_after_ms: unhealthyAfterMs, lost_after_ms: lostAfterMs };
}

/**
 * One sweep: pools with silent nodes are assessed first, then each silent node is decided about by itself. Nodes of a pool that could not
 * be assessed are left for the next sweep, since nobody can say whether they may be given up.
 */
export async function sweep(pool: pg.Pool, led: Led, thresholds: SilenceThresholds): Promise<SweepReport> {
  await pool.query({ name: 'note_unheard', text: NOTE_UNHEARD, values: [SCHEDULER] });
  const silent = await findSilent(pool, thresholds);
  const { rows: unsettled } = await pool.query<{ pool: Pool }>({
    name: 'unsettled_pools',
    text: UNSETTLED,
    values: [WHOLE_FLEET],
  });
  const names = [...new Set([...silent, ...unsettled].map((row) => row.pool))];
  const unhealthy_after_ms = thresholds.unhealthyAfterMs;
  const pools = await giveAll(
    led,
    assessLosses,
    names.map((name) => ({ pool: name, unhealthy_after_ms })),
  );
  const unclear = new Set(pools.failed.map(({ command }) => command.pool));
  const due = silent.flatMap((node) => (unclear.has(node.pool) ? [] : (sweepOf(node, thresholds) ?? [])));
  return { pools, nodes: await giveAll(led, sweepNode, due) };
}
