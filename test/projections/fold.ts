import type { RowOf, TableName } from '../../projections/registry.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { RecordedEvent } from '../../src/domain/event/recorded.ts';
import { FoldState } from '../../src/projector/fold-state.ts';
import { START } from '../support/events.ts';
import { METADATA } from '../support/given.ts';

/** Events as recorded one second after another from START, at positions from 1. Folds do not look at streams. */
export function recorded(events: readonly FleetEvent[]): RecordedEvent[] {
  return events.map((event, index) => ({
    position: index + 1,
    stream: 'any',
    at: START + index * 1_000,
    metadata: METADATA,
    ...event,
  }));
}

/** A table's rows after events. */
export function fold<T extends TableName>(table: T, ...events: readonly FleetEvent[]): RowOf<T>[] {
  const state = new FoldState([table]);
  for (const event of recorded(events)) state.apply(event);
  return [...state.rows(table).values()];
}
