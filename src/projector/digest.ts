import { hash } from 'node:crypto';
import { DISPOSABLE, projectionOf } from '../../projections/registry.ts';
import { catalogue } from '../domain/event/catalogue.ts';

/**
 * Digest of what the tables mean: event versions, table shapes, which event touches which table. Every batch compares it with the one
 * the tables were built with, so that an older program never writes rows that a newer one has changed.
 */
export const DEFINITION_DIGEST = hash(
  'sha256',
  JSON.stringify({
    fold: 1,
    events: Object.entries(catalogue).map(([type, { version }]) => [type, version]),
    tables: DISPOSABLE.map((name) => {
      const { table, handles } = projectionOf(name);
      return [table.name, table.key, table.columns, table.indexes, handles];
    }),
  }),
  'hex',
);
