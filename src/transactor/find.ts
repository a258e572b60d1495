import { projectionOf, type RowOf, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';
import type { Statement } from '../tables/statements.ts';
import { selectList, sqlType, toParameter } from '../tables/values.ts';

/** What a column of a finder is compared with: a fixed value, the argument of that name, or any of a list (`anyOf` names it). */
type Condition =
  | { readonly is: string | number | boolean }
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
}

/** A finder on one table: its columns are that table's. */
export interface Finder<T extends TableName> extends AnyFinder {
  readonly table: T;
}

/** Arguments of a finder by name. */
export type FinderArguments = Readonly<Record<string, unknown>>;

/** Defines a finder on one table. */
export function finder<T extends TableName>(
  table: T,
  definition: {
    readonly name: string;
    readonly where: { readonly [C in keyof RowOf<T> & string]?: Condition };
    readonly orderBy: keyof RowOf<T> & string;
    readonly limit: number;
  },
): Finder<T> {
  return { ...definition, table, where: definition.where as AnyFinder['where'] };
}

/** SQL of a finder. `extra` rows are asked for beyond the limit, because rows changed in this batch will be taken out again. */
export function findStatement(find: AnyFinder, args: FinderArguments, extra: number): Statement {
  const { table } = projectionOf(find.table);
  const values: unknown[] = [];
  const conditions = Object.entries(find.where).map(([column, condition]) => {
    const shape = table.columns[column];
    if (shape === undefined) throw new Error(`${table.name} has no column ${column}`);
    if ('anyOf' in condition) {
      values.push(args[condition.anyOf]);
      return `${column} = ANY($${values.length}::${sqlType(shape.type)}[])`;
    }
    values.push(toParameter(shape, 'is' in condition ? condition.is : args[condition.argument]));
    return `${column} = $${values.length}`;
  });
  values.push(find.limit + extra);
  const source = `${table.schema}.${table.name}`;
  return {
    name: `find_${find.name}`,
    text: `SELECT ${selectList(table)} FROM ${source} WHERE ${conditions.join(' AND ')} ORDER BY ${find.orderBy} LIMIT $${values.length}`,
    values,
  };
}

/** Whether a row satisfies a finder's conditions: the same as its SQL. NULL equals nothing. */
export function matches(find: AnyFinder, row: Row, args: FinderArguments): boolean {
  return Object.entries(find.where).every(([column, condition]) => {
    const value = fieldOf(row, column);
    if (value === null || value === undefined) return false;
    if ('anyOf' in condition) return (args[condition.anyOf] as readonly unknown[]).includes(value);
    return value === ('is' in condition ? condition.is : args[condition.argument]);
  });
}

/** Order of a finder: bytes for text (like COLLATE "C" for the ASCII we order by), numbers as numbers. */
export function compareBy(find: AnyFinder): (a: Row, b: Row) => number {
  return (a, b) => {
    const left = fieldOf(a, find.orderBy) as string | number;
    const right = fieldOf(b, find.orderBy) as string | number;
    if (left === right) return 0;
    return left < right ? -1 : 1;
  };
}

/** The key of a row of a table. */
export function keyOf(table: TableName, row: Row): string | number {
  return fieldOf(row, projectionOf(table).table.key) as string | number;
}

function fieldOf(row: Row, column: string): unknown {
  return (row as Readonly<Record<string, unknown>>)[column];
}
