import type pg from 'pg';
import type { AssessDeployment } from '../../domain/deployment/assess.ts';
import type { Led, PassReport } from '../pass.ts';
import { admitNetworks, unplaceInstances } from './admit.ts';
import { assessDeployments } from './assess.ts';
import { migrateInstances, noteOverdueDrains } from './drains.ts';
import { PAGE } from './pages.ts';
import { placeInstances } from './place.ts';
import { publishRoutes, removeRoutes } from './routes.ts';
import { teardownInstances } from './teardown.ts';

/**
 * Brings every deployment one step nearer to what it is to be. Each step looks at what those before it have left in the log, so a pass
 * that is cut off anywhere is gone on with by the next, of whichever replica. Steps that only time makes due are found by each pass. A step
 * reads `page` rows at once, and leaves the rest to the next pass when it has changed as many.
 */
export async function runWorkloads(pool: pg.Pool, led: Led, page = PAGE): Promise<readonly PassReport[]> {
  const { rows } = await pool.query<{ now: number }>('SELECT clock_timestamp() AS now');
  const now = rows[0]?.now ?? Date.now();
  const unplaced = await unplaceInstances(pool, led, page);
  const migrated = await migrateInstances(pool, led, page);
  const placed = await placeInstances(pool, led, page);
  const admitted = await admitNetworks(pool, led, page);
  const published = await publishRoutes(pool, led, now, page);
  const removed = await removeRoutes(pool, led, page);
  const tornDown = await teardownInstances(pool, led, page);
  const lacking = new Map<string, NonNullable<AssessDeployment['unplaceable']>>([
    ...[...published.hostless].map((id) => [id, 'no_ingress_node'] as const),
    ...placed.unplaceable,
  ]);
  const assessed = await assessDeployments(pool, led, lacking, page);
  const overdue = await noteOverdueDrains(pool, led, page);
  return [unplaced, migrated, overdue, placed.report, admitted, published.report, removed, tornDown, assessed];
}
