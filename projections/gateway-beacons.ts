import type { GatewayBeacon } from '../src/domain/ca/state.ts';
import { defineProjection } from './projection.ts';
import { defineTable, json, text, timestamp } from './table.ts';

const table = defineTable<GatewayBeacon>()({
  name: 'gateway_beacons',
  schema: 'telemetry',
  source: `(SELECT program, kind, coalesce(details -> 'pki' -> 'trusted_ca_sha256s', '[]') AS trusted_ca_sha256s, beacon_at
            FROM telemetry.programs) AS gateway_beacons`,
  key: 'program',
  columns: { program: text, kind: text, trusted_ca_sha256s: json, beacon_at: timestamp },
  indexes: [],
});

/** What programs last said of themselves. No event writes it: gateways flush it, a rotation of the CA reads it. */
export const gatewayBeacons = defineProjection(table, {});
