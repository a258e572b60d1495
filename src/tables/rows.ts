import { projectionOf, type TableName } from '../../projections/registry.ts';
import type { Row } from '../../projections/table.ts';

/** The key of a row of a table. */
export function keyOf(table: TableName, row: Row): string | number {
  return fieldOf(row, projectionOf(table).table.key) as string | number;
}

/** A row's value of a column that is only known by name. */
export function fieldOf(row: Row, column: string): unknown {
  return (row as Readonly<Record<string, unknown>>)[column];
}
