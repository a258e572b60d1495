import { hash } from 'node:crypto';
import type pg from 'pg';

/** A source that a build will download: its digest and size. */
export interface StoredSource {
  readonly sha256: string;
  readonly bytes: number;
}

/** Digests a source, without storing it. */
export function describeSource(source: Buffer): StoredSource {
  return { sha256: hash('sha256', source), bytes: source.length };
}

/** Stores a source under its digest, for the agent that builds from it. Stored already: nothing is done. */
export async function storeSource(pool: pg.Pool, source: Buffer): Promise<void> {
  await pool.query('INSERT INTO telemetry.sources (sha256, body) VALUES ($1, $2) ON CONFLICT (sha256) DO NOTHING', [
    hash('sha256', source),
    source,
  ]);
}
