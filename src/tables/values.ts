import type { Column, ColumnType, Row, Table } from '../../projections/table.ts';

/** A row's value as JSON would hold it: timestamps are ms, bigints safe integers. */
type Value = unknown;

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
export function toParameter(column: Column, value: Value): unknown {
  if (value === null || value === undefined) return null;
  if (column.type === 'timestamp') return new Date(Number(value)).toISOString();
  if (column.type === 'json') return JSON.stringify(value);
  return value;
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
export function columnsOf<R extends Row>(table: Table<R>): readonly (readonly [keyof R & string, Column])[] {
  return Object.entries(table.columns) as unknown as (readonly [keyof R & string, Column])[];
}

/** A table's columns for a select list. */
export function selectList(table: Table): string {
  return columnsOf(table)
    .map(([name]) => name)
    .join(', ');
}
