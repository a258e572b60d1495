import type pg from 'pg';
import { assessLossesCommand } from '../commands/loss.ts';
import { sweepNodeCommand } from '../commands/sweep.ts';
import type { NodeStatus } from '../domain/node/state.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import type { AppendedEvent } from '../transactor/command.ts';
import { type DryRun, dryRun } from '../transactor/dry-run.ts';
import type { Led } from './pass.ts';
import { findSilent, type SilenceThresholds, type SilentNode, type SweepReport, sweep, sweepOf } from './sweep.ts';

/** A silent node, and what a sweep would decide about it; undefined where there is nothing to decide. */
export interface ForecastNode {
  readonly node: SilentNode;
  readonly forecast: DryRun | undefined;
}

/** A sweep that was made: the nodes that were silent before it, with the status that each has after it. */
export interface SweepByHand {
  readonly silent: readonly { readonly node: SilentNode; readonly statusAfter: NodeStatus }[];
  readonly report: SweepReport;
  /** What was appended, in the order of the log. */
  readonly events: readonly AppendedEvent[];
}

/** The term in which the fleet is led now; undefined while no scheduler ever led. */
export async function currentTerm(pool: pg.Pool): Promise<number | undefined> {
  const { rows } = await pool.query<{ term: number }>('SELECT term FROM telemetry.scheduler WHERE id = $1', [
    SCHEDULER,
  ]);
  return rows[0]?.term;
}

/**
 * One sweep as the scheduler makes them, in the term in which the fleet is led: if another replica takes over meanwhile, it is refused.
 * How long a node has been silent is what the scheduler has counted; without one that runs, nobody counts.
 */
export async function sweepByHand(pool: pg.Pool, led: Led, thresholds: SilenceThresholds): Promise<SweepByHand> {
  const silent = await findSilent(pool, thresholds);
  const appended: AppendedEvent[] = [];
  const noting: Led['transactor'] = {
    async execute(definition, command, options) {
      const outcome = await led.transactor.execute(definition, command, options);
      if (outcome.ok) appended.push(...outcome.events);
      return outcome;
    },
  };
  const report = await sweep(pool, { ...led, transactor: noting }, thresholds);
  const { rows } = await pool.query<{ node_id: string; status: NodeStatus }>(
    'SELECT node_id, status FROM fleet.fleet_nodes WHERE node_id = ANY($1)',
    [silent.map(({ node_id }) => node_id)],
  );
  const after = new Map(rows.map(({ node_id, status }) => [node_id, status]));
  return {
    silent: silent.map((node) => ({ node, statusAfter: after.get(node.node_id) ?? node.status })),
    report,
    events: appended.toSorted((one, other) => one.position - other.position),
  };
}

/** What {@link sweepByHand} would decide, node by node, without deciding it. A pool that it would hold counts as held. */
export async function forecastSweep(pool: pg.Pool, thresholds: SilenceThresholds): Promise<readonly ForecastNode[]> {
  const silent = await findSilent(pool, thresholds);
  const wouldHold = new Set<string>();
  for (const name of new Set(silent.map((node) => node.pool))) {
    const assess = { pool: name, unhealthy_after_ms: thresholds.unhealthyAfterMs };
    const assessed = await dryRun(pool, assessLossesCommand, assess);
    if (assessed.ok && assessed.wouldAppend.includes('node_loss_held')) wouldHold.add(name);
  }
  const forecasts = [];
  for (const node of silent) {
    const command = sweepOf(node, thresholds);
    const forecast = command && (await dryRun(pool, sweepNodeCommand, command));
    forecasts.push({ node, forecast: wouldHold.has(node.pool) ? heldBack(node, forecast, silent) : forecast });
  }
  return forecasts;
}

/** The forecast of a node whose pool would be held before it is decided about. */
function heldBack(
  { node_id, pool }: SilentNode,
  forecast: DryRun | undefined,
  silent: readonly SilentNode[],
): DryRun | undefined {
  if (forecast?.ok !== true || !forecast.wouldAppend.includes('node_lost')) return forecast;
  const details = { node_id, pool, silent: silent.filter((one) => one.pool === pool).length };
  return { ok: false, refusal: { code: 'losses_held', details } };
}
