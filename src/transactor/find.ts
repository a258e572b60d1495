import type { RowOf, TableName } from '../../projections/registry.ts';
import { projectionOf, registry } from '../../projections/registry.ts';
import { selectList, sqlType, toParameter } from '../tables/values.ts';
import type { Statement } from '../tables/statements.ts';

/** What a column of a finder is compared with: a fixed value, or the argument of that name; `any` compares with a list. */
type Condition = { readonly is: string | number | boolean } | { readonly argument: string } | { readonly anyOf: string };

/**
 * A lookup by something other than the key: conditions joined by AND, an order and a limit. One declaration makes both the SQL and the
 * test on rows in memory, so that a batch sees its own changes exactly as if they had been written (tested as a property).
 */
export interface Finder<T extends TableName = TableName> {
  readonly name: string;
  readonly table: T;
  readonly where: { readonly [C in keyof RowOf<T> & string]?: Condition };
  readonly orderBy: keyof RowOf<T> & string;
  readonly limit: number;
}

/** Arguments of a finder by name. */
export type FinderArguments = Readonly<Record<string, unknown>>;

/** Defines a finder on one table. */
export function finder<T extends TableName>(table: T, definition: Omit<Finder<T>, 'table'>): Finder<T> {
  return { table, ...definition };
}

/** SQL of a finder. `extra` rows are asked for beyond the limit, because rows changed in this batch will be taken out again. */
export function findStatement(find: Finder, args: FinderArguments, extra: number): Statement {
  const { table } = projectionOf(find.table);
  const values: unknown[] = [];
  const conditions = Object.entries(find.where as Record<string, Condition>).map(([column, condition]) => {
    const shape = table.columns[column as never] as { type: 'text' };
    if ('anyOf' in condition) {
      values.push(args[condition.anyOf]);
      return `${column} = ANY($${values.length}::${sqlType(shape.type)}[])`;
    }
    values.push(toParameter({ ...shape, nullable: true }, 'is' in condition ? condition.is : args[condition.argument]));
    return `${column} = $${values.length}`;
  });
  values.push(find.limit + extra);
  return {
    name: `find_${find.name}`,
    text: `SELECT ${selectList(table)} FROM ${table.schema}.${table.name} WHERE ${conditions.join(' AND ')} ORDER BY ${find.orderBy} LIMIT $${values.length}`,
    values,
  };
}

/** Whether a row satisfies a finder's conditions: the same as its SQL. NULL equals nothing. */
export function matches(find: Finder, row: object, args: FinderArguments): boolean {
  return Object.entries(find.where as Record<string, Condition>).every(([column, condition]) => {
    const value: unknown = row[column as never];
    if (value === null || value === undefined) return false;
    if ('anyOf' in condition) return (args[condition.anyOf] as readonly unknown[]).includes(value);
    return value === ('is' in condition ? condition.is : args[condition.argument]);
  });
}

/** Order of a finder: bytes for text (like COLLATE "C" for the ASCII we store), numbers as numbers. */
export function compareBy(find: Finder): (a: object, b: object) => number {
  return (a, b) => {
    const left: string | number = a[find.orderBy as never];
    const right: string | number = b[find.orderBy as never];
    return left < right ? -1 : left > right ? 1 : 0;
  };
}

/** The key of a row of a table. */
export function keyOf(table: TableName, row: object): string | number {
  return row[registry[table].table.key as never];
}
