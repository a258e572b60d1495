import type { Key } from '../../projections/projection.ts';
import { projectionOf, type RowOf, TABLE_NAMES, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import type { RecordedEvent } from '../domain/event/recorded.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import { keyOf } from '../tables/rows.ts';
import { deleteRows, type Statement, upsertRows } from '../tables/statements.ts';
import { answerOf, type Finder, type FinderArguments, matches } from './find.ts';
import { type Found, StoredRows } from './stored-rows.ts';

/** What a command reads: the projection as it is under the lock, with everything that this batch has decided so far. */
export interface Rows {
  get<T extends TableName>(table: T, key: string): Promise<RowOf<T> | undefined>;
  find<T extends TableName>(find: Finder<T>, args: FinderArguments): Promise<RowOf<T>[]>;
}

/**
 * The rows of one batch: what was read, overlaid by what the batch's events have made of it. A command's changes can be taken back
 * (it was refused, or it threw) without touching those of the commands before it.
 */
export class RowView implements Rows {
  readonly #stored: StoredRows;
  readonly #changed = new Map<TableName, Map<Key, Row | undefined>>(TABLE_NAMES.map((name) => [name, new Map()]));
  #undo: (() => void)[] = [];

  constructor(db: Queryable) {
    this.#stored = new StoredRows(db);
  }

  async get<T extends TableName>(table: T, key: string): Promise<RowOf<T> | undefined> {
    return (await this.#row(table, key)) as RowOf<T> | undefined;
  }

  async find<T extends TableName>(find: Finder<T>, args: FinderArguments): Promise<RowOf<T>[]> {
    const changed = this.#changedIn(find.table);
    const unchanged = ({ rows }: Found) => rows.filter((row) => !changed.has(keyOf(find.table, row)));
    let found = await this.#stored.find(find, args, find.limit);
    if (!found.complete && unchanged(found).length < find.limit) {
      // Twice as many as this search needs, because the next command will probably ask the same and take another.
      found = await this.#stored.find(find, args, find.limit + 2 * changed.size);
    }
    const ours = [...changed.values()].filter((row) => row !== undefined && matches(find, row, args)) as Row[];
    return answerOf(find, [...unchanged(found), ...ours]) as RowOf<T>[];
  }

  /** Marks the beginning of a command: {@link takeBack} returns to here. */
  begin(): void {
    this.#undo = [];
  }

  /** Forgets what was folded since {@link begin}. */
  takeBack(): void {
    for (const undo of this.#undo.toReversed()) undo();
    this.#undo = [];
  }

  /** Folds an event into every row that it touches. Throws FoldError for a log that cannot be true. */
  async fold(event: RecordedEvent): Promise<void> {
    for (const table of TABLE_NAMES) {
      const projection = projectionOf(table);
      for (const key of projection.keys(event)) {
        const row = projection.fold(projection.blind(event) ? undefined : await this.#row(table, key), event, key);
        this.#set(table, key, row ?? undefined);
      }
    }
  }

  /** The statements that write every changed row. */
  changes(): Statement[] {
    return TABLE_NAMES.flatMap((table) => {
      if (projectionOf(table).table.source !== undefined) return [];
      const changed = [...this.#changedIn(table)];
      const written = changed.flatMap(([, row]) => row ?? []);
      const removed = changed.flatMap(([key, row]) => (row === undefined ? [key] : []));
      return [
        ...(written.length > 0 ? [upsertRows(table, written)] : []),
        ...(removed.length > 0 ? [deleteRows(table, removed)] : []),
      ];
    });
  }

  async #row(table: TableName, key: Key): Promise<Row | undefined> {
    const changed = this.#changedIn(table);
    return changed.has(key) ? changed.get(key) : this.#stored.get(table, key);
  }

  #set(table: TableName, key: Key, row: Row | undefined): void {
    const changed = this.#changedIn(table);
    const before = changed.get(key);
    this.#undo.push(changed.has(key) ? () => changed.set(key, before) : () => changed.delete(key));
    changed.set(key, row);
  }

  #changedIn(table: TableName): Map<Key, Row | undefined> {
    const changed = this.#changed.get(table);
    if (changed === undefined) throw new Error(`no such table: ${table}`);
    return changed;
  }
}
