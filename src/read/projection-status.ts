import type pg from 'pg';
import { DISPOSABLE } from '../../projections/registry.ts';
import { readHead } from '../log/postgres/reader.ts';
import { DEFINITION_DIGEST } from '../projector/digest.ts';
import { readSnapshot } from '../projector/generation.ts';

/** How the projections stand, without looking at their rows. Times are ms. */
export interface ProjectionStatus {
  readonly position: number;
  readonly logPosition: number;
  readonly builtAt: number;
  readonly definitionDigest: string;
  readonly definitionMatches: boolean;
  /** Rows by table, counted. */
  readonly rows: Readonly<Record<string, number>>;
}

/** Reads how the projections stand, in one snapshot. */
export function readProjectionStatus(pool: pg.Pool): Promise<ProjectionStatus> {
  return readSnapshot(pool, async (client) => {
    const head = await readHead(client);
    const { rows } = await client.query<{ digest: string; built_at: number; position: number | null }>(
      'SELECT digest, built_at, (SELECT max(position) FROM fleet.fleet_events) AS position FROM fleet.definition',
    );
    const [row] = rows;
    if (row === undefined) throw new Error('fleet.definition is empty');
    const counts = DISPOSABLE.map((table) => `(SELECT count(*) FROM fleet.${table}) AS ${table}`);
    const counted = await client.query<Record<string, number>>(`SELECT ${counts.join(', ')}`);
    return {
      position: row.position ?? 0,
      logPosition: head.position,
      builtAt: row.built_at,
      definitionDigest: row.digest,
      definitionMatches: row.digest === DEFINITION_DIGEST,
      rows: counted.rows[0] ?? {},
    };
  });
}
