import * as v from 'valibot';
import { event } from '../event/definition.ts';
import { pool, providerId, sha256Hex } from '../fields.ts';

/** Events of stream `pool-<name>`. */
export const poolEvents = {
  pool_firewall_converged: event(v.strictObject({ pool, firewall_id: providerId, rules_sha256: sha256Hex })),
} as const;
