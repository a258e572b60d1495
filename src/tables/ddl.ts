import type { AnyTable } from '../../projections/table.ts';
import { columnsOf, sqlType } from './values.ts';

/** `CREATE TABLE` for a projection's table in a schema, without its indexes. */
export function createTable(table: AnyTable, schema: string): string {
  const columns = columnsOf(table).map(([name, { type, nullable }]) => {
    const collation = type === 'text' ? ' COLLATE "C"' : '';
    return `${name} ${sqlType(type)}${collation}${nullable ? '' : ' NOT NULL'}`;
  });
  return `CREATE TABLE ${schema}.${table.name} (${columns.join(', ')})`;
}

/** The primary key and secondary indexes: after a rebuild's COPY, because filling a table that has them is slower. */
export function createIndexes(table: AnyTable, schema: string): string[] {
  const secondary = table.indexes.map(({ name, columns, unique, where }) => {
    const condition = where === undefined ? '' : ` WHERE ${where}`;
    return `CREATE ${unique === true ? 'UNIQUE ' : ''}INDEX ${name} ON ${schema}.${table.name} (${columns.join(', ')})${condition}`;
  });
  return [`ALTER TABLE ${schema}.${table.name} ADD PRIMARY KEY (${table.key})`, ...secondary];
}
