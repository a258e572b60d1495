import type { AnyTable, Column, ColumnType } from '../../projections/table.ts';

/** A row's value as JSON would hold it: timestamps are ms, bigints safe integers. */
type Value = unknown;

/** What a query takes as a parameter. */
type Parameter = string | number | boolean | null;

/** The SQL type of a column. Text is compared by bytes ("C"), so that SQL and TypeScript agree on order. */
export function sqlType(type: ColumnType): string {
  switch (type) {
    case 'text':
      return 'text';
    case 'boolean':
      return 'boolean';
    case 'integer':
      return 'integer';
    case 'bigint':
      return 'bigint';
    case 'timestamp':
      return 'timestamptz';
    case 'json':
      return 'jsonb';
  }
}

/** A value as a query parameter. */
export function toParameter(column: Column, value: Value): Parameter {
  if (value === null || value === undefined) return null;
  if (column.type === 'timestamp') return new Date(Number(value)).toISOString();
  if (column.type === 'json') return JSON.stringify(value);
  return value as Parameter;
}

/** A value in the text format of COPY: tab-separated, `\N` for null, backslash escapes. */
export function toCopyText(column: Column, value: Value): string {
  const parameter = toParameter(column, value);
  if (parameter === null) return '\\N';
  if (typeof parameter === 'boolean') return parameter ? 't' : 'f';
  const text = String(parameter);
  return /[\\\t\n\r]/.test(text) ? text.replaceAll(/[\\\t\n\r]/g, (c) => COPY_ESCAPES[c] ?? c) : text;
}

const COPY_ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** A table's columns in their order. */
export function columnsOf(table: AnyTable): readonly (readonly [string, Column])[] {
  return Object.entries(table.columns);
}

/** A table's columns for a select list. */
export function selectList(table: AnyTable): string {
  return columnsOf(table)
    .map(([name]) => name)
    .join(', ');
}

/** The SQL type of a table's key. */
export function keyType(table: AnyTable): string {
  const key = table.columns[table.key];
  if (key === undefined) throw new Error(`${table.name} has no column ${table.key}`);
  return sqlType(key.type);
}
