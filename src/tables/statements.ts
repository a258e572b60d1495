import { projectionOf, type TableName } from '../../projections/registry.ts';
import type { AnyTable, Row } from '../../projections/table.ts';
import { columnsOf, keyType, selectList, sqlType, toParameter } from './values.ts';

/** A named statement (prepared once a connection) with its parameters. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: unknown[];
}

const texts = new Map<string, string>();

function statement(name: string, text: () => string, values: unknown[]): Statement {
  let cached = texts.get(name);
  if (cached === undefined) {
    cached = text();
    texts.set(name, cached);
  }
  return { name, text: cached, values };
}

const qualified = (table: AnyTable) => `${table.schema}.${table.name}`;

/** What rows of a table are selected from. */
export const sourceOf = (table: AnyTable): string => table.source ?? qualified(table);

/**
 * Rows by key. Guard rows are locked, because others change them and a decision has to hold until its batch commits; in key order, so
 * that two writers cannot wait for one another.
 */
export function selectByKeys(name: TableName, keys: readonly unknown[]): Statement {
  const { table } = projectionOf(name);
  return statement(`get_${name}`, () => {
    const lock = table.guard === true ? ` ORDER BY ${table.key} FOR UPDATE` : '';
    return `SELECT ${selectList(table)} FROM ${sourceOf(table)} WHERE ${table.key} = ANY($1::${keyType(table)}[])${lock}`;
  }, [keys]);
}

/** Writes rows whole: inserts new ones, replaces known ones. One statement a table, columns as arrays. */
export function upsertRows(name: TableName, rows: readonly Row[]): Statement {
  const { table } = projectionOf(name);
  const columns = columnsOf(table);
  return statement(
    `put_${name}`,
    () => {
      const names = columns.map(([column]) => column);
      const arrays = columns.map(([, { type }], i) => `$${i + 1}::${sqlType(type)}[]`);
      const changes = names.filter((column) => column !== table.key).map((column) => `${column} = excluded.${column}`);
      return (
        `INSERT INTO ${qualified(table)} (${names.join(', ')}) SELECT * FROM unnest(${arrays.join(', ')}) ` +
        `ON CONFLICT (${table.key}) DO UPDATE SET ${changes.join(', ')}`
      );
    },
    columns.map(([column, shape]) => rows.map((row) => toParameter(shape, (row as Record<string, unknown>)[column]))),
  );
}

/** Deletes rows by key. */
export function deleteRows(name: TableName, keys: readonly unknown[]): Statement {
  const { table } = projectionOf(name);
  return statement(
    `delete_${name}`,
    () => `DELETE FROM ${qualified(table)} WHERE ${table.key} = ANY($1::${keyType(table)}[])`,
    [keys],
  );
}
