import { DISPOSABLE, projectionOf } from '../../projections/registry.ts';
import { createIndexes, createTable } from '../tables/ddl.ts';
import { columnsOf } from '../tables/values.ts';
import { DEFINITION_DIGEST } from './digest.ts';

/** Statements that make an empty schema of projection tables, stamped with the definitions they follow. */
export function createSchema(schema: string): string[] {
  return [
    `CREATE SCHEMA ${schema}`,
    `CREATE TABLE ${schema}.definition (digest text NOT NULL, built_at timestamptz NOT NULL DEFAULT now())`,
    `INSERT INTO ${schema}.definition (digest) VALUES ('${DEFINITION_DIGEST}')`,
    ...DISPOSABLE.map((name) => createTable(projectionOf(name).table, schema)),
  ];
}

/** Statements that give a filled schema its keys, indexes and statistics, so that its first readers are planned well. */
export function indexSchema(schema: string): string[] {
  return DISPOSABLE.flatMap((name) => {
    const { table } = projectionOf(name);
    // Nobody's plan depends on what is in a JSON document.
    const planned = columnsOf(table).flatMap(([column, { type }]) => (type === 'json' ? [] : [column]));
    return [...createIndexes(table, schema), `ANALYZE ${schema}.${table.name} (${planned.join(', ')})`];
  });
}
