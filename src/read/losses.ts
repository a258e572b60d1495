import { POOLS, type Pool } from '../domain/fields.ts';
import { WHOLE_FLEET } from '../domain/pool/state.ts';
import type { FleetView } from './fleet-view.ts';

/** Whether the nodes of a pool that fall silent are given up by themselves. */
export interface PoolLosses {
  readonly pool: Pool;
  /** Since when none is, ms; null: they are. */
  readonly held_at: number | null;
  /** Those that were silent when the hold began. */
  readonly silent_node_ids: readonly string[];
  /** Those that an operator said may be given up all the same. */
  readonly released_node_ids: readonly string[];
}

/** What is held back, pool by pool, and since when an operator has frozen all of it. */
export interface Losses {
  readonly frozen_at: number | null;
  readonly pools: readonly PoolLosses[];
}

/** Reads what is held back. */
export async function readLosses({ rows }: Pick<FleetView, 'rows'>): Promise<Losses> {
  const [freeze, ...holds] = await Promise.all([
    rows.get('node_loss_holds', WHOLE_FLEET),
    ...POOLS.map((pool) => rows.get('node_loss_holds', pool)),
  ]);
  return {
    frozen_at: freeze?.held_at ?? null,
    pools: POOLS.map((pool, i) => ({
      pool,
      held_at: holds[i]?.held_at ?? null,
      silent_node_ids: holds[i]?.held_at == null ? [] : holds[i].silent_node_ids,
      released_node_ids: holds[i]?.released_node_ids ?? [],
    })),
  };
}
