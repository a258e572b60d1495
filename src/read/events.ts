import { type Kysely, type RawBuilder, sql } from 'kysely';
import { eventRow } from '../../projections/fleet-events.ts';
import type { EventType } from '../domain/event/catalogue.ts';
import type { EventRow } from '../domain/event/state.ts';
import type { EventLog } from '../log/event-log.ts';
import { columns, type ReadDatabase } from './database.ts';

/** Which events are asked for; everything absent means any. */
export interface EventFilter {
  readonly nodeId?: string | undefined;
  readonly types?: readonly EventType[] | undefined;
  /** Recorded at or after this time (ms). */
  readonly sinceMs?: number | undefined;
}

/** A stretch of the log: the first `limit` after a position, or the last `limit`. */
export interface EventRange {
  readonly after?: number | undefined;
  readonly limit: number;
}

/** Events in the order of the log. */
export async function readEventRows(
  db: Kysely<ReadDatabase>,
  { nodeId, types, sinceMs }: EventFilter,
  { after, limit }: EventRange,
): Promise<readonly EventRow[]> {
  const rows = await db
    .selectFrom('fleet.fleet_events')
    .select(columns('fleet_events'))
    .$if(nodeId !== undefined, (query) => query.where('node_id', '=', nodeId ?? ''))
    .$if(types !== undefined, (query) => query.where('type', 'in', [...(types ?? [])]))
    .$if(sinceMs !== undefined, (query) => query.where('at', '>=', timestamp(sinceMs ?? 0)))
    .$if(after !== undefined, (query) => query.where('position', '>', after ?? 0))
    .orderBy('position', after === undefined ? 'desc' : 'asc')
    .limit(limit)
    .execute();
  return after === undefined ? rows.toReversed() : rows;
}

/** Rows hold ms where the column is a timestamptz. */
function timestamp(ms: number): RawBuilder<number> {
  return sql<number>`to_timestamp(${ms / 1_000})`;
}

/** The same filter on one event: for those that are followed live. */
function matches(row: EventRow, { nodeId, types, sinceMs }: EventFilter): boolean {
  return (
    (nodeId === undefined || row.node_id === nodeId) &&
    (types === undefined || types.includes(row.type)) &&
    (sinceMs === undefined || row.at >= sinceMs)
  );
}

/** Events after a position as they are appended, until the signal aborts. None is skipped. */
export async function* followEventRows(
  log: Pick<EventLog, 'follow'>,
  filter: EventFilter,
  from: { after: number; signal: AbortSignal },
): AsyncGenerator<EventRow> {
  for await (const page of log.follow(from)) {
    for (const { event } of page) {
      const row = eventRow(event);
      if (matches(row, filter)) yield row;
    }
  }
}
