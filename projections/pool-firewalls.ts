import type { PoolFirewallState } from '../src/domain/pool/state.ts';
import { defineProjection, replaces } from './projection.ts';
import { bigint, defineTable, text, timestamp } from './table.ts';

const table = defineTable<PoolFirewallState>()({
  name: 'pool_firewalls',
  key: 'pool',
  columns: { pool: text, firewall_id: bigint, rules_sha256: text, converged_at: timestamp },
  indexes: [],
});

/** One row a pool whose provider firewall was ever converged. */
export const poolFirewalls = defineProjection(table, {
  pool_firewall_converged: replaces(
    (e) => e.data.pool,
    (e) => ({ ...e.data, converged_at: e.at }),
  ),
});
