import type { Pool } from '../fields.ts';

/** What a pool's provider firewall was last converged to: the row of `pool_firewalls`. */
export interface PoolFirewallState {
  readonly pool: Pool;
  readonly firewall_id: number;
  readonly rules_sha256: string;
  readonly converged_at: number;
}

/** Whether nodes of a pool may be given up: the row of `node_loss_holds`, one a pool and one, `fleet`, for the switch by hand. */
export interface LossHoldState {
  readonly scope: string;
  /** Since when none is given up; null when they are. */
  readonly held_at: number | null;
  readonly silent_node_ids: readonly string[];
  /** Nodes that may be given up although many are silent. */
  readonly released_node_ids: readonly string[];
  readonly changed_at: number;
}

/** The scope of the switch by hand. */
export const WHOLE_FLEET = 'fleet';
