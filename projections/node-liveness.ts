import type { NodeLiveness } from '../src/domain/node/state.ts';
import { defineProjection } from './projection.ts';
import { bigint, defineTable, integer, text, timestamp } from './table.ts';

const table = defineTable<NodeLiveness>()({
  name: 'node_liveness',
  schema: 'telemetry',
  key: 'node_id',
  columns: { node_id: text, last_seen_at: timestamp, heard_ms: bigint.orNull, data_disk_free_gb: integer.orNull },
  indexes: [],
});

/** When each node was last heard. No event writes it: gateways flush it, decisions read it. */
export const nodeLiveness = defineProjection(table, {});
