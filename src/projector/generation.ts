import type pg from 'pg';

/**
 * Which tables a transaction reads, by the oid of the schema `fleet`: the one that names lead to now, and the one that the snapshot
 * knows. A rebuild between the two leaves them apart.
 */
export interface Generation {
  readonly resolved: number | null;
  readonly visible: number | null;
}

/** Asked first in a transaction it takes the snapshot. `to_regnamespace` looks at the catalogue as it is, the SELECT through the snapshot. */
export const GENERATION_QUERY = `
  SELECT to_regnamespace('fleet')::oid AS resolved, (SELECT oid FROM pg_namespace WHERE nspname = 'fleet') AS visible`;

/** Rebuilds follow one another slower than reads: one that meets several in a row is not reading but waiting. */
const ATTEMPTS = 5;

/**
 * Reads until no rebuild has put other tables in place meanwhile. A snapshot does not protect from that: names are looked up as they
 * are now, so a snapshot from before the swap would go on with the new tables, whose rows COPY FREEZE shows to everyone, and mix two
 * positions of the log. `read` tells the generation at its beginning; its result, or its error, counts only when that is still the one.
 * Throws when the tables are replaced again and again.
 */
export async function readOneGeneration<T>(
  askGeneration: () => Promise<Generation>,
  read: (began: (generation: Generation) => void) => Promise<T>,
): Promise<T> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
    let first: Generation | undefined;
    const [outcome] = await Promise.allSettled([
      read((generation) => {
        first = generation;
      }),
    ]);
    if (await stands(first, askGeneration)) {
      if (outcome.status === 'rejected') throw outcome.reason;
      return outcome.value;
    }
  }
  throw new Error('the tables were replaced each time while they were read');
}

async function stands(first: Generation | undefined, askGeneration: () => Promise<Generation>): Promise<boolean> {
  // Nothing was read: whatever went wrong has another cause.
  if (first === undefined) return true;
  if (first.resolved !== first.visible) return false;
  // Who cannot be asked is gone, and the read has failed with it.
  const now = await askGeneration().catch(() => first);
  return now?.resolved === first.resolved;
}

/**
 * Runs `look` in a snapshot on one connection and rolls back what it may have locked or written; all of it on one generation of the tables (see {@link readOneGeneration}), so
 * it may run more than once. A connection whose transaction cannot be ended does not go back to the pool.
 */
export function readSnapshot<T>(
  pool: pg.Pool,
  look: (client: pg.ClientBase) => Promise<T>,
  access: 'READ ONLY' | 'READ WRITE' = 'READ ONLY',
): Promise<T> {
  return readOneGeneration(
    () => generationOf(pool),
    async (began) => {
      const client = await pool.connect();
      let ended = false;
      try {
        await client.query(`BEGIN ISOLATION LEVEL REPEATABLE READ ${access}`);
        began(await generationOf(client));
        return await look(client);
      } finally {
        ended = await client.query('ROLLBACK').then(
          () => true,
          () => false,
        );
        client.release(!ended);
      }
    },
  );
}

async function generationOf(db: Pick<pg.ClientBase, 'query'>): Promise<Generation> {
  const { rows } = await db.query<Generation>({ name: 'generation', text: GENERATION_QUERY });
  const [row] = rows;
  if (row === undefined) throw new Error('the database answered nothing');
  return row;
}
