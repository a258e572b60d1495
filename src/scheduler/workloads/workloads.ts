import type pg from 'pg';
import type { AssessDeployment } from '../../domain/deployment/assess.ts';
import type { Led, PassReport } from '../pass.ts';
import { admitNetworks, unplaceInstances } from './admit.ts';
import { assessDeployments } from './assess.ts';
import { migrateInstances, noteOverdueDrains } from './drains.ts';
import { placeInstances } from './place.ts';
import { publishRoutes, removeRoutes } from './routes.ts';
import { teardownInstances } from './teardown.ts';

/**
 * Brings every deployment one step nearer to what it is to be. Each step looks at what those before it have left in the log, so a pass
 * that is cut off anywhere is gone on with by the next, of whichever replica. Steps that only time makes due are found by each pass.
 */
export async function runWorkloads(pool: pg.Pool, led: Led): Promise<readonly PassReport[]> {
  const { rows } = await pool.query<{ now: number }>('SELECT clock_timestamp() AS now');
  const now = rows[0]?.now ?? Date.now();
  const unplaced = await unplaceInstances(pool, led);
  const migrated = await migrateInstances(pool, led);
  const placed = await placeInstances(pool, led);
  const admitted = await admitNetworks(pool, led);
  const published = await publishRoutes(pool, led, now);
  const removed = await removeRoutes(pool, led);
  const tornDown = await teardownInstances(pool, led);
  const lacking = new Map<string, NonNullable<AssessDeployment['unplaceable']>>([
    ...[...published.hostless].map((id) => [id, 'no_ingress_node'] as const),
    ...placed.unplaceable,
  ]);
  const assessed = await assessDeployments(pool, led, lacking);
  const overdue = await noteOverdueDrains(pool, led);
  return [unplaced, migrated, overdue, placed.report, admitted, published.report, removed, tornDown, assessed];
}
