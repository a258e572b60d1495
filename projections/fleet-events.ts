import { EVENT_TYPES } from '../src/domain/event/catalogue.ts';
import type { RecordedEvent } from '../src/domain/event/recorded.ts';
import { type EventRow, gatewayEffects } from '../src/domain/event/state.ts';
import { creates, defineProjection } from './projection.ts';
import { bigint, boolean, defineTable, json, text, timestamp } from './table.ts';

const table = defineTable<EventRow>()({
  name: 'fleet_events',
  key: 'position',
  appendOnly: true,
  columns: {
    position: bigint,
    at: timestamp,
    type: text,
    stream: text,
    node_id: text.orNull,
    job_id: text.orNull,
    pool: text.orNull,
    actor_kind: text,
    actor_id: text,
    authorises: boolean,
    offers_work: boolean,
    data: json,
  },
  indexes: [
    { name: 'fleet_events_node', columns: ['node_id', 'position'], where: 'node_id IS NOT NULL' },
    { name: 'fleet_events_type', columns: ['type', 'position'] },
    { name: 'fleet_events_authorises', columns: ['position'], where: 'authorises' },
    { name: 'fleet_events_offers_work', columns: ['position'], where: 'offers_work' },
  ],
});

/** An event as operators filter it; the one home of which node, job and pool an event belongs to. */
export function eventRow(event: RecordedEvent): EventRow {
  const data: { node_id?: string | null; job_id?: string | null; pool?: string | null; [field: string]: unknown } =
    event.data;
  return {
    position: event.position,
    at: event.at,
    type: event.type,
    stream: event.stream,
    node_id: data.node_id ?? null,
    job_id: data.job_id ?? null,
    pool: data.pool ?? null,
    actor_kind: event.metadata.actor.kind,
    actor_id: event.metadata.actor.id,
    ...gatewayEffects[event.type],
    data: event.data,
  };
}

const handler = creates<EventRow, RecordedEvent>((event) => event.position, eventRow);

/** One row an event: what `fleet events` filters, and how a gateway learns that something it keeps has changed. */
export const fleetEvents = defineProjection<EventRow, 'fleet_events'>(
  table,
  Object.fromEntries(EVENT_TYPES.map((type) => [type, handler])),
);
