import type { EventData } from '../domain/event/catalogue.ts';
import { recordFirewall } from '../domain/pool/firewall.ts';
import type { PoolFirewallState } from '../domain/pool/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';

/** See {@link recordFirewall}. */
export const recordFirewallCommand: CommandDefinition<
  EventData<'pool_firewall_converged'>,
  PoolFirewallState | undefined
> = {
  name: 'record_firewall',
  load: (rows, { pool }) => rows.get('pool_firewalls', pool),
  decide: recordFirewall,
};
