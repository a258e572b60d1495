import { append, type Decision, nothing } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import { poolStream } from '../stream.ts';
import type { PoolFirewallState } from './state.ts';

/** Records what a pool's firewall was converged to, when that is news. */
export function recordFirewall(
  converged: EventData<'pool_firewall_converged'>,
  firewall: PoolFirewallState | undefined,
): Decision {
  const same = firewall?.rules_sha256 === converged.rules_sha256 && firewall.firewall_id === converged.firewall_id;
  if (same) return nothing();
  return append(poolStream(converged.pool), { type: 'pool_firewall_converged', data: converged });
}
