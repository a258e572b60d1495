import type { Key } from '../../projections/projection.ts';
import { projectionOf, type RowOf, TABLE_NAMES, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import type { RecordedEvent } from '../domain/event/recorded.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import { deleteRows, type Statement, selectByKeys, upsertRows } from '../tables/statements.ts';
import { compareBy, type Finder, type FinderArguments, findStatement, keyOf, matches } from './find.ts';

/** What a command reads: the projection as it is under the lock, with everything that this batch has decided so far. */
export interface Rows {
  get<T extends TableName>(table: T, key: string): Promise<RowOf<T> | undefined>;
  find<T extends TableName>(find: Finder<T>, args: FinderArguments): Promise<RowOf<T>[]>;
}

/** A row as this batch knows it. `dirty` rows differ from the table and are written at the end. */
interface Entry {
  readonly row: Row | undefined;
  readonly dirty: boolean;
}

/**
 * The rows of one batch: what was read, overlaid by what the batch's events have made of it. A command's changes can be taken back
 * (it was refused, or it threw) without touching those of the commands before it.
 */
export class RowView implements Rows {
  readonly #db: Queryable;
  readonly #tables = new Map<TableName, Map<Key, Entry>>(TABLE_NAMES.map((name) => [name, new Map()]));
  #undo: (() => void)[] = [];

  constructor(db: Queryable) {
    this.#db = db;
  }

  /** Reads rows of several keys at once; keys known already are not read again. */
  async prefetch(table: TableName, keys: readonly Key[]): Promise<void> {
    const known = this.#entries(table);
    const missing = [...new Set(keys)].filter((key) => !known.has(key));
    if (missing.length === 0) return;
    const { rows } = await this.#db.query<Row>(selectByKeys(table, missing));
    const found = new Map(rows.map((row) => [keyOf(table, row), row]));
    for (const key of missing) known.set(key, { row: found.get(key), dirty: false });
  }

  async get<T extends TableName>(table: T, key: string): Promise<RowOf<T> | undefined> {
    return (await this.#row(table, key)) as RowOf<T> | undefined;
  }

  async find<T extends TableName>(find: Finder<T>, args: FinderArguments): Promise<RowOf<T>[]> {
    const entries = this.#entries(find.table);
    const dirty = [...entries.values()].filter((entry) => entry.dirty);
    const { rows } = await this.#db.query<Row>(findStatement(find, args, dirty.length));
    const unchanged = rows.filter((row) => entries.get(keyOf(find.table, row))?.dirty !== true);
    const changed = dirty.flatMap(({ row }) => (row !== undefined && matches(find, row, args) ? [row] : []));
    return [...unchanged, ...changed].sort(compareBy(find)).slice(0, find.limit) as RowOf<T>[];
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
        const row = projection.fold(await this.#row(table, key, projection.table.appendOnly), event);
        this.#set(table, key, { row: row ?? undefined, dirty: true });
      }
    }
  }

  /** The statements that write every dirty row. */
  changes(): Statement[] {
    return TABLE_NAMES.flatMap((table) => {
      const dirty = [...this.#entries(table)].filter(([, entry]) => entry.dirty);
      const written = dirty.flatMap(([, { row }]) => (row === undefined ? [] : [row]));
      const removed = dirty.flatMap(([key, { row }]) => (row === undefined ? [key] : []));
      return [
        ...(written.length > 0 ? [upsertRows(table, written)] : []),
        ...(removed.length > 0 ? [deleteRows(table, removed)] : []),
      ];
    });
  }

  /** A row of an append-only table cannot be there before the event that creates it, so it is not looked up (`isNew`). */
  async #row(table: TableName, key: Key, isNew = false): Promise<Row | undefined> {
    const entry = this.#entries(table).get(key);
    if (entry !== undefined) return entry.row;
    if (isNew) return undefined;
    await this.prefetch(table, [key]);
    return this.#entries(table).get(key)?.row;
  }

  #set(table: TableName, key: Key, entry: Entry): void {
    const entries = this.#entries(table);
    const before = entries.get(key);
    this.#undo.push(() => (before === undefined ? entries.delete(key) : entries.set(key, before)));
    entries.set(key, entry);
  }

  #entries(table: TableName): Map<Key, Entry> {
    const entries = this.#tables.get(table);
    if (entries === undefined) throw new Error(`no such table: ${table}`);
    return entries;
  }
}
