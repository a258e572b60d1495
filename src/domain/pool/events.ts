import * as v from 'valibot';
import { event } from '../event/definition.ts';
import { count, pool, providerId, sha256Hex, uuid } from '../fields.ts';

const nodes = v.pipe(v.array(uuid), v.maxLength(5_000));

/** Events of stream `pool-<name>`. */
export const poolEvents = {
  pool_firewall_converged: event(v.strictObject({ pool, firewall_id: providerId, rules_sha256: sha256Hex })),
  /** Of the pool's `pool_size` nodes that count, so many fell silent together that none is given up by itself. */
  node_loss_held: event(v.strictObject({ pool, silent_node_ids: nodes, pool_size: count })),
  node_loss_released: event(
    v.strictObject({
      pool,
      cause: v.picklist(['recovered', 'operator']),
      /** Nodes that an operator said may be given up, however many they are. */
      node_ids: nodes,
    }),
  ),
} as const;

/** Events of stream `fleet`. */
export const fleetWideEvents = {
  node_losses_frozen: event(v.strictObject({ scope: v.literal('fleet') })),
  node_losses_thawed: event(v.strictObject({ scope: v.literal('fleet') })),
} as const;
