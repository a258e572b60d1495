import { hash } from 'node:crypto';
import type { Projection } from '../../projections/projection.ts';
import { DISPOSABLE, projectionOf } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import { catalogue, EVENT_TYPES } from '../domain/event/catalogue.ts';
import type { RecordedEvent } from '../domain/event/recorded.ts';
import { sampleEvents } from '../domain/event/sample-events.ts';
import { createIndexes, createTable } from '../tables/ddl.ts';

/** What stands for the row where a fold refuses the event. */
const REFUSED = 'refused';

/**
 * Digest of what the tables mean: event versions, the tables' SQL, and what the folds make of sample events. Every batch compares it
 * with the one the tables were built with, so that an older program never writes rows that a newer one has changed.
 */
export const DEFINITION_DIGEST = definitionDigest(DISPOSABLE.map(projectionOf));

/** The digest of some projections. It is the same in every process: no clock, no chance, no text of a function. */
export function definitionDigest(projections: readonly Projection<Row>[]): string {
  const definition = {
    events: EVENT_TYPES.map((type) => [type, catalogue[type].version]),
    tables: projections.map(({ table }) => [createTable(table, 'fleet'), ...createIndexes(table, 'fleet')]),
    behaviour: projections.map(behaviour),
  };
  return hash('sha256', JSON.stringify(definition), 'hex');
}

/**
 * What a fold makes of sample events: every one after the row that a history of all types has left, one of each type after each other
 * type, and the first of all. A fold that looks further back, or for a certain text or number, can change unseen.
 */
function behaviour(projection: Projection<Row>): unknown[] {
  const samples = projection.handles.map((type, i) => sampleEvents(type, i + 1));
  const history = samples.flatMap(([event]) => event ?? []);
  // A row of an append-only table is made by one event, whatever was before.
  const fromNothing = history.map((event) => fold(projection, undefined, event));
  if (projection.table.appendOnly === true) return fromNothing;
  let row: Row | undefined;
  const story = history.map((event) => {
    const next = fold(projection, row, event);
    if (next !== REFUSED) row = next ?? undefined;
    return next;
  });
  return [
    history.map((event) => projection.keys(event)),
    fromNothing,
    story,
    samples.flat().map((event) => fold(projection, row, later(event))),
    history.map((event) => {
      const changed = fold(projection, row, event);
      return changed === REFUSED ? REFUSED : history.map((next) => fold(projection, changed ?? undefined, later(next)));
    }),
  ];
}

/** The event at another moment, so that what a row has of it can be told from what it had. */
function later(event: RecordedEvent): RecordedEvent {
  return { ...event, position: event.position + 100, at: event.at + 100_000 };
}

function fold(projection: Projection<Row>, row: Row | undefined, event: RecordedEvent): Row | null | typeof REFUSED {
  try {
    // All samples of one type are about the same rows, so the first key stands for the others.
    return projection.fold(row, event, projection.keys(event)[0] ?? '');
  } catch {
    return REFUSED;
  }
}
