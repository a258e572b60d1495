import type { EventType } from '../src/domain/event/catalogue.ts';
import type { RecordedEvent, RecordedOf } from '../src/domain/event/recorded.ts';
import type { AnyTable, Row, Table } from './table.ts';

/** Key of a row: what its table's key column holds. */
export type Key = string | number;

/** One step of a fold: which rows an event touches, and what becomes of each (`null` removes it). */
interface Handler<R, E> {
  readonly keys: (event: E) => readonly Key[];
  readonly fold: (row: R | undefined, event: E, key: Key) => R | null;
  /** The fold does not look at the row that was there, so nobody need read it. */
  readonly blind?: boolean;
}

type Handlers<R> = { readonly [T in EventType]?: Handler<R, RecordedOf<T>> };

/**
 * A table and the pure fold that fills it. The same definition serves the transactor's batch, rebuild, verify, time travel and tests.
 */
export interface Projection<R extends Row, T extends AnyTable = AnyTable> {
  readonly table: T;
  /** The keys of the rows that an event touches; empty for most events. */
  keys(event: RecordedEvent): readonly Key[];
  /** The row of a key after the event. Throws {@link FoldError} when the log cannot be true, such as an update of a row that never was. */
  fold(row: R | undefined, event: RecordedEvent, key: Key): R | null;
  /** Whether the event's row after it is the same whatever was there before, so that it need not be read. */
  blind(event: RecordedEvent): boolean;
  /** The event types that touch the table. */
  readonly handles: readonly EventType[];
}

/** The log tells something that cannot have happened: an update of a row that was never created, or a second creation. */
export class FoldError extends Error {
  override readonly name = 'FoldError';
}

/** Binds a table to its fold. */
export function defineProjection<R extends Row, N extends string>(
  table: Table<R, N>,
  handlers: Handlers<R>,
): Projection<R, Table<R, N>> {
  const handlerOf = (event: RecordedEvent) => handlers[event.type] as Handler<R, RecordedEvent> | undefined;
  return {
    table,
    handles: Object.keys(handlers) as EventType[],
    keys: (event) => handlerOf(event)?.keys(event) ?? [],
    // A row of an append-only table cannot be there before the event that creates it.
    blind: (event) => table.appendOnly === true || handlerOf(event)?.blind === true,
    fold(row, event, key) {
      const handler = handlerOf(event);
      if (handler === undefined) throw new FoldError(`${table.name} does not fold ${event.type}`);
      try {
        return handler.fold(row, event, key);
      } catch (cause) {
        throw new FoldError(`${table.name} at position ${event.position} (${event.type})`, { cause });
      }
    },
  };
}

/** The event creates one row. */
export function creates<R, E>(key: (event: E) => Key, create: (event: E) => R): Handler<R, E> {
  return {
    keys: (event) => [key(event)],
    fold(row, event) {
      if (row !== undefined) throw new FoldError(`row ${key(event)} exists already`);
      return create(event);
    },
  };
}

/** The event changes one row, which exists. */
export function updates<R, E>(key: (event: E) => Key, update: (row: R, event: E) => R): Handler<R, E> {
  return updatesEach((event) => [key(event)], update);
}

/** The event changes several rows, which exist. */
export function updatesEach<R, E>(
  keys: (event: E) => readonly Key[],
  update: (row: R, event: E, key: Key) => R,
): Handler<R, E> {
  return {
    keys,
    fold(row, event, key) {
      if (row === undefined) throw new FoldError(`no row ${key}`);
      return update(row, event, key);
    },
  };
}

/** The event says all there is to one row, whatever it was before. */
export function replaces<R, E>(key: (event: E) => Key, replacement: (event: E) => R): Handler<R, E> {
  return replacesEach((event) => [key(event)], replacement);
}

/** The event says all there is to several rows. */
export function replacesEach<R, E>(
  keys: (event: E) => readonly Key[],
  replacement: (event: E, key: Key) => R,
): Handler<R, E> {
  return { keys, fold: (_, event, key) => replacement(event, key), blind: true };
}

/** The event removes one row; no row is fine (telemetry may have been lost). */
export function removes<R, E>(key: (event: E) => Key): Handler<R, E> {
  return removesEach((event) => [key(event)]);
}

/** The event removes several rows; no row is fine. */
export function removesEach<R, E>(keys: (event: E) => readonly Key[]): Handler<R, E> {
  return { keys, fold: () => null, blind: true };
}
