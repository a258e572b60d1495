import type { Pool } from '../fields.ts';

/** What a pool's provider firewall was last converged to: the row of `pool_firewalls`. */
export interface PoolFirewallState {
  readonly pool: Pool;
  readonly firewall_id: number;
  readonly rules_sha256: string;
  readonly converged_at: number;
}
