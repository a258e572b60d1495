import type { Key } from '../../projections/projection.ts';
import { projectionOf, TABLE_NAMES, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import { keyOf } from '../tables/rows.ts';
import { selectByKeys } from '../tables/statements.ts';
import { type AnyFinder, type FinderArguments, findStatement } from './find.ts';

/** Rows that a finder found. `complete`: there are no others, however many are asked for. */
export interface Found {
  readonly rows: readonly Row[];
  readonly complete: boolean;
}

/** A search that was or will be made. `limit` may grow until it is sent. */
interface Search {
  readonly args: FinderArguments;
  limit: number;
  sent: boolean;
  readonly found: PromiseWithResolvers<Found>;
}

/**
 * The rows as they lie in the tables, each read once. What is asked for in the same turn of the event loop, by however many commands,
 * is one query a table and one a finder. Good for as long as nobody else can write the tables: under the lock.
 */
export class StoredRows {
  readonly #db: Queryable;
  readonly #rows = new Map<TableName, Map<Key, Promise<Row | undefined>>>(TABLE_NAMES.map((name) => [name, new Map()]));
  readonly #searches = new Map<string, Search>();
  readonly #wantedKeys = new Map<TableName, Map<Key, PromiseWithResolvers<Row | undefined>>>();
  readonly #wantedSearches = new Map<string, { readonly find: AnyFinder; readonly searches: Search[] }>();
  #scheduled = false;

  constructor(db: Queryable) {
    this.#db = db;
  }

  /** A row by its key. A guard row is locked by this, until the transaction ends. */
  get(table: TableName, key: Key): Promise<Row | undefined> {
    const rows = this.#rowsOf(table);
    let row = rows.get(key);
    if (row === undefined) {
      const wanted = Promise.withResolvers<Row | undefined>();
      const keys = this.#wantedKeys.get(table);
      if (keys === undefined) this.#wantedKeys.set(table, new Map([[key, wanted]]));
      else keys.set(key, wanted);
      row = wanted.promise;
      rows.set(key, row);
      this.#schedule();
    }
    return row;
  }

  /** The first rows of a finder, at least `limit` of them where there are so many. */
  find(find: AnyFinder, args: FinderArguments, limit: number): Promise<Found> {
    const name = `${find.name} ${JSON.stringify(args)}`;
    let search = this.#searches.get(name);
    if (search !== undefined && !search.sent) {
      // Several commands of a batch ask the same and each may take away what the next would have found.
      search.limit += limit;
    } else if (search === undefined || search.limit < limit) {
      search = { args, limit, sent: false, found: Promise.withResolvers() };
      this.#searches.set(name, search);
      const wanted = this.#wantedSearches.get(find.name);
      if (wanted === undefined) this.#wantedSearches.set(find.name, { find, searches: [search] });
      else wanted.searches.push(search);
      this.#schedule();
    }
    return search.found.promise;
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    // Runs when all promises that can go on have gone on, so that commands which load in step are read for in step.
    process.nextTick(() => {
      this.#scheduled = false;
      for (const [table, wanted] of this.#wantedKeys) void this.#fetch(table, wanted);
      for (const { find, searches } of this.#wantedSearches.values()) void this.#search(find, searches);
      this.#wantedKeys.clear();
      this.#wantedSearches.clear();
    });
  }

  async #fetch(table: TableName, wanted: ReadonlyMap<Key, PromiseWithResolvers<Row | undefined>>): Promise<void> {
    try {
      const { rows } = await this.#db.query<Row>(selectByKeys(table, [...wanted.keys()]));
      const found = new Map(rows.map((row) => [keyOf(table, row), row]));
      for (const [key, { resolve }] of wanted) resolve(found.get(key));
    } catch (error) {
      for (const { reject } of wanted.values()) reject(error);
    }
  }

  async #search(find: AnyFinder, searches: readonly Search[]): Promise<void> {
    for (const search of searches) search.sent = true;
    try {
      const { rows } = await this.#db.query<Row & { search: number }>(findStatement(find, searches));
      const found = Map.groupBy(rows, (row) => row.search);
      for (const [i, { limit, found: answer }] of searches.entries()) {
        const ours = (found.get(i + 1) ?? []).map(({ search: _, ...row }) => row);
        this.#keep(find.table, ours);
        answer.resolve({ rows: ours, complete: ours.length < limit });
      }
    } catch (error) {
      for (const { found } of searches) found.reject(error);
    }
  }

  /** A row that was found need not be read again by its key, but for guard rows, which are to be locked. */
  #keep(table: TableName, rows: readonly Row[]): void {
    if (projectionOf(table).table.guard === true) return;
    const known = this.#rowsOf(table);
    for (const row of rows) {
      const key = keyOf(table, row);
      if (!known.has(key)) known.set(key, Promise.resolve(row));
    }
  }

  #rowsOf(table: TableName): Map<Key, Promise<Row | undefined>> {
    const rows = this.#rows.get(table);
    if (rows === undefined) throw new Error(`no such table: ${table}`);
    return rows;
  }
}
