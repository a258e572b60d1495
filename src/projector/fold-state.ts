import type { Key } from '../../projections/projection.ts';
import { projectionOf, type RowOf, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import { EVENT_TYPES, type EventType } from '../domain/event/catalogue.ts';
import type { RecordedEvent } from '../domain/event/recorded.ts';

/** Takes rows that will never change again as soon as they are there, so that they need not be held in memory. */
export type FinishedRows = (table: TableName, row: Row) => void;

/**
 * Tables folded in memory from the first event on: what rebuild writes, verify compares with and time travel shows. Folds are the
 * projections' own; nothing here knows an event type.
 */
export class FoldState {
  /** The position of the last event that was folded; 0 before the first. */
  position = 0;
  /** `at` of that event, ms. */
  at = 0;
  readonly #tables: ReadonlyMap<TableName, Map<Key, Row>>;
  /** By event type, the tables that it touches: most events touch one or two. */
  readonly #touched: ReadonlyMap<EventType, readonly TableName[]>;
  readonly #finished: FinishedRows | undefined;

  constructor(tables: readonly TableName[], finished?: FinishedRows) {
    this.#tables = new Map(tables.map((name) => [name, new Map()]));
    this.#touched = new Map(
      EVENT_TYPES.map((type) => [type, tables.filter((name) => projectionOf(name).handles.includes(type))]),
    );
    this.#finished = finished;
  }

  /** Folds one event. Throws FoldError. */
  apply(event: RecordedEvent): void {
    for (const name of this.#touched.get(event.type) ?? []) {
      const projection = projectionOf(name);
      const rows = this.#rowsOf(name);
      for (const key of projection.keys(event)) {
        const row = projection.fold(rows.get(key), event, key);
        if (row === null) rows.delete(key);
        else if (projection.table.appendOnly === true && this.#finished !== undefined) this.#finished(name, row);
        else rows.set(key, row);
      }
    }
    this.position = event.position;
    this.at = event.at;
  }

  /** The rows of a table by key. */
  rows<T extends TableName>(table: T): ReadonlyMap<Key, RowOf<T>> {
    return this.#rowsOf(table) as ReadonlyMap<Key, Row> as ReadonlyMap<Key, RowOf<T>>;
  }

  #rowsOf(table: TableName): Map<Key, Row> {
    const rows = this.#tables.get(table);
    if (rows === undefined) throw new Error(`${table} was not folded`);
    return rows;
  }
}
