import type { TableName } from '../../projections/registry.ts';
import { type FoldSource, foldLog, type Until } from './fold-log.ts';
import { FoldState } from './fold-state.ts';

/**
 * The tables as they were after a position, or at a time (ms): the log's prefix folded in memory, touching no table. The past has no
 * telemetry, because telemetry is not in the log.
 */
export async function foldAt(log: FoldSource, tables: readonly TableName[], until: Until): Promise<FoldState> {
  const state = new FoldState(tables);
  await foldLog(log, state, until);
  return state;
}
