import pg from 'pg';
import { projectionOf, type RowOf, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import { fieldOf } from '../tables/rows.ts';
import { type Statement, sourceOf } from '../tables/statements.ts';
import { selectList, sqlType, toParameter } from '../tables/values.ts';

/** What a column of a finder is compared with: a fixed value, null, the argument of that name, or any of a list (`anyOf` names it). */
type Condition =
  | { readonly is: string | number | boolean | null }
  | { readonly argument: string }
  | { readonly anyOf: string };

/**
 * A lookup by something other than the key: conditions joined by AND, an order and a limit. One declaration makes both the SQL and the
 * test on rows in memory, so that a batch sees its own changes exactly as if they had been written (tested as a property).
 */
export interface AnyFinder {
  readonly name: string;
  readonly table: TableName;
  readonly where: Readonly<Record<string, Condition>>;
  readonly orderBy: string;
  readonly limit: number;
  /** Whether who asks needs every row that there is: then `limit` is only what is taken for impossible. */
  readonly whole: boolean;
}

/** A finder on one table: its columns are that table's. */
export interface Finder<T extends TableName> extends AnyFinder {
  readonly table: T;
}

/** Arguments of a finder by name. */
export type FinderArguments = Readonly<Record<string, unknown>>;

/** Defines a finder on one table: of the first row alone (limit 1), or of all there are. */
export function finder<T extends TableName>(
  table: T,
  definition: {
    readonly name: string;
    readonly where: { readonly [C in keyof RowOf<T> & string]?: Condition };
    readonly orderBy: keyof RowOf<T> & string;
    readonly limit: number;
  },
): Finder<T> {
  return { ...definition, table, where: definition.where as AnyFinder['where'], whole: definition.limit > 1 };
}

/**
 * SQL of a finder for any number of searches at once, each with its arguments and its limit. The column `search` says which one found
 * a row, from 1. Fixed values are literals, so that partial indexes serve.
 */
export function findStatement(
  find: AnyFinder,
  searches: readonly { readonly args: FinderArguments; readonly limit: number }[],
): Statement {
  const { table } = projectionOf(find.table);
  const arrays = [searches.map(({ limit }) => limit)] as unknown[][];
  const types = ['integer'];
  const conditions = Object.entries(find.where).map(([column, condition]) => {
    const shape = table.columns[column];
    if (shape === undefined) throw new Error(`${table.name} has no column ${column}`);
    if ('is' in condition) {
      return condition.is === null ? `${column} IS NULL` : `${column} = ${pg.escapeLiteral(String(condition.is))}`;
    }
    const parameter = `a${arrays.length}`;
    if ('anyOf' in condition) {
      arrays.push(searches.map(({ args }) => arrayLiteral(args[condition.anyOf] as readonly unknown[])));
      types.push('text');
      return `${column} = ANY(${parameter}::${sqlType(shape.type)}[])`;
    }
    arrays.push(searches.map(({ args }) => toParameter(shape, args[condition.argument])));
    types.push(sqlType(shape.type));
    return `${column} = ${parameter}`;
  });
  const source = `SELECT ${selectList(table)} FROM ${sourceOf(table)} WHERE ${conditions.join(' AND ')}`;
  // OFFSET 0 keeps the planner from walking the primary key in its order until it meets a row that satisfies the conditions.
  const candidates = find.orderBy === table.key ? `SELECT * FROM (${source} OFFSET 0) AS candidates` : source;
  const parameters = types.map((type, i) => `$${i + 1}::${type}[]`);
  return {
    name: `find_${find.name}`,
    text:
      `SELECT search, found.* FROM unnest(${parameters.join(', ')}) WITH ORDINALITY AS ` +
      `asked (${types.map((_, i) => `a${i}`).join(', ')}, search) CROSS JOIN LATERAL (` +
      `${candidates} ORDER BY ${find.orderBy} LIMIT a0) AS found`,
    values: arrays,
  };
}

/** A list in the text form of a PostgreSQL array. */
function arrayLiteral(values: readonly unknown[]): string {
  return `{${values.map((value) => `"${String(value).replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`;
}

/** Whether a row satisfies a finder's conditions: the same as its SQL. NULL equals no argument. */
export function matches(find: AnyFinder, row: Row, args: FinderArguments): boolean {
  return Object.entries(find.where).every(([column, condition]) => {
    const value = fieldOf(row, column);
    if ('is' in condition) return value === condition.is;
    if (value === null || value === undefined) return false;
    if ('anyOf' in condition) return (args[condition.anyOf] as readonly unknown[]).includes(value);
    return value === args[condition.argument];
  });
}

/** Order of a finder: bytes for text (like COLLATE "C" for the ASCII we order by), numbers as numbers. */
function compareBy(find: AnyFinder): (a: Row, b: Row) => number {
  return (a, b) => {
    const left = fieldOf(a, find.orderBy) as string | number;
    const right = fieldOf(b, find.orderBy) as string | number;
    if (left === right) return 0;
    return left < right ? -1 : 1;
  };
}

/**
 * There may be more rows than a finder answers. What is decided on a part of them would be wrong (a revocation that leaves certificates in
 * force), so nothing is. Finders that ask for the first row alone never throw it.
 */
class FinderLimitError extends Error {
  override readonly name = 'FinderLimitError';
  constructor({ name, limit }: AnyFinder) {
    super(`${name} found ${limit} rows or more, which is more than it is made for`);
  }
}

/** What a finder answers of the rows that satisfy it: in its order, up to its limit. Throws {@link FinderLimitError}. */
export function answerOf<R extends Row>(find: AnyFinder, rows: readonly R[]): R[] {
  const answer = rows.toSorted(compareBy(find)).slice(0, find.limit);
  if (find.whole && answer.length === find.limit) throw new FinderLimitError(find);
  return answer;
}
