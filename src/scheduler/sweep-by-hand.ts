import type pg from 'pg';
import { sweepNodeCommand } from '../commands/sweep.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import { type DryRun, dryRun } from '../transactor/dry-run.ts';
import type { Led } from './pass.ts';
import { findSilent, type SilenceThresholds, type SilentNode, type SweepReport, sweep, sweepOf } from './sweep.ts';

/** A silent node, and what a sweep would decide about it; undefined where there is nothing to decide. */
export interface ForecastNode {
  readonly node: SilentNode;
  readonly forecast: DryRun | undefined;
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
export async function sweepByHand(
  pool: pg.Pool,
  led: Led,
  thresholds: SilenceThresholds,
): Promise<{ readonly silent: readonly SilentNode[]; readonly report: SweepReport }> {
  const silent = await findSilent(pool, thresholds);
  return { silent, report: await sweep(pool, led, thresholds) };
}

/** What {@link sweepByHand} would decide, node by node, without deciding it. Pools are taken as they are held now. */
export async function forecastSweep(pool: pg.Pool, thresholds: SilenceThresholds): Promise<readonly ForecastNode[]> {
  const forecasts = [];
  for (const node of await findSilent(pool, thresholds)) {
    const command = sweepOf(node, thresholds);
    forecasts.push({ node, forecast: command && (await dryRun(pool, sweepNodeCommand, command)) });
  }
  return forecasts;
}
