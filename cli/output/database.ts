import type { DatabaseState } from '../../src/domain/database/state.ts';
import { isoTime } from './format.ts';

/** A database for --json: its row with times in ISO 8601. */
export function databaseJson(database: DatabaseState) {
  const { created_at, ready_at, ended_at, ...row } = database;
  return { ...row, created_at: isoTime(created_at), ready_at: isoTime(ready_at), ended_at: isoTime(ended_at) };
}
