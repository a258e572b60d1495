import type pg from 'pg';
import type { SilenceThresholds } from '../src/scheduler/sweep.ts';
import { readThresholds, thresholdsInForce } from '../src/scheduler/thresholds.ts';
import { usageFailure } from './failure.ts';

/** From when on silent nodes are unhealthy and lost: what the scheduler goes by, else what this environment says. */
export async function findThresholds(
  pool: pg.Pool,
  variables: Readonly<Record<string, string | undefined>>,
): Promise<SilenceThresholds> {
  const inForce = await thresholdsInForce(pool);
  if (inForce !== undefined) return inForce;
  const read = readThresholds(variables);
  if (!read.ok) throw usageFailure(read.message);
  return read.thresholds;
}
