import type { Pool } from 'pg';
import { chainHash } from '../../src/log/chain.ts';
import { readRows } from '../../src/log/postgres/reader.ts';
import { GENESIS } from '../../src/log/prove.ts';

/**
 * What an intruder who owns the database can do: edits one event's bytes and computes the whole chain anew, so that nothing inside the
 * database tells any more.
 */
export async function rewriteLog(pool: Pool, position: number, edit: (body: string) => string): Promise<void> {
  await editEvent(pool, position, edit);
  let { hash } = GENESIS;
  for (const row of await readRows(pool, { after: 0, limit: 100_000 })) {
    hash = chainHash(hash, row.body);
    await asOwner(pool, `UPDATE log.events SET hash = decode($2, 'hex') WHERE position = $1`, [row.position, hash]);
  }
}

/** Edits one event's bytes and leaves its hash. Throws when the edit changes nothing: the test would prove nothing. */
export async function editEvent(pool: Pool, position: number, edit: (body: string) => string): Promise<void> {
  const [row] = await readRows(pool, { after: position - 1, limit: 1 });
  const edited = edit(row?.body ?? '');
  if (row === undefined || edited === row.body) throw new Error(`the event at ${position} was not changed`);
  await asOwner(pool, 'UPDATE log.events SET body = $2 WHERE position = $1', [position, edited]);
}

async function asOwner(pool: Pool, statement: string, values: readonly unknown[]): Promise<void> {
  await pool.query('ALTER TABLE log.events DISABLE TRIGGER ALL');
  await pool.query(statement, [...values]);
  await pool.query('ALTER TABLE log.events ENABLE TRIGGER ALL');
}
