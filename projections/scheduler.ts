import type { SchedulerState } from '../src/domain/scheduler/state.ts';
import { defineProjection } from './projection.ts';
import { bigint, defineTable, text } from './table.ts';

const table = defineTable<SchedulerState>()({
  name: 'scheduler',
  schema: 'telemetry',
  key: 'id',
  columns: { id: text, term: bigint, holder: text, heard_ms: bigint },
  indexes: [],
});

/** Who leads the schedulers, and the clock of silence. No event writes it: the leader does, and its commands are checked against it. */
export const scheduler = defineProjection(table, {});
