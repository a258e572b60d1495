import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { type Generation, readOneGeneration, readSnapshot } from '../../src/projector/generation.ts';
import { rebuild, replaceProjections } from '../../src/projector/rebuild.ts';
import { underDecisionLock } from '../../src/projector/under-lock.ts';
import { readDatabase } from '../../src/read/database.ts';
import { withLiveView } from '../../src/read/live-view.ts';
import { readProjectionStatus } from '../../src/read/projection-status.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { requestNodes, testTransactor } from '../support/fleet.ts';

let database: TestDatabase;
let transactor: Transactor;
let nodes = 20;

beforeAll(async () => {
  database = await createTestDatabase();
  transactor = testTransactor(database.url);
  await requestNodes(transactor, nodes);
});

afterAll(async () => {
  await transactor.close();
  await database.drop();
});

/** A rebuild without its last step, which would wait a while for a view that is being looked at. */
function swap() {
  return underDecisionLock(database.pool, (client) => replaceProjections(database.pool, client));
}

async function schemas(): Promise<string[]> {
  const { rows } = await database.pool.query<{ nspname: string }>(
    `SELECT nspname FROM pg_namespace WHERE nspname LIKE 'fleet%' ORDER BY nspname`,
  );
  return rows.map(({ nspname }) => nspname);
}

describe('rebuilds beside readers', () => {
  test('ten of them, five readers of several tables: none fails, nobody reads anything else than the fleet', async () => {
    const db = readDatabase(database.pool);
    const seen = new Set<string>();
    const rebuilding = { ended: false };
    const views = Array.from({ length: 4 }, async () => {
      while (!rebuilding.ended) {
        const read = await withLiveView(db, async (view) => {
          const firewalls = await view.firewalls();
          const jobs = await view.jobs({ limit: 10 });
          return {
            position: view.moment.position,
            nodes: (await view.nodes({})).length,
            rest: [...firewalls, ...jobs],
          };
        });
        seen.add(JSON.stringify(read));
        await nextTurn();
      }
    });
    const statuses = (async () => {
      while (!rebuilding.ended) {
        const { position, definitionMatches, rows } = await readProjectionStatus(database.pool);
        seen.add(JSON.stringify({ position, nodes: definitionMatches ? rows['fleet_nodes'] : -1, rest: [] }));
        await nextTurn();
      }
    })();
    const rebuilds = (async () => {
      try {
        for (let round = 0; round < 10; round += 1) await rebuild(database.pool);
      } finally {
        rebuilding.ended = true;
      }
    })();
    await Promise.all([rebuilds, ...views, statuses]);
    expect([...seen]).toEqual([JSON.stringify({ position: nodes, nodes, rest: [] })]);
    expect(await schemas()).toEqual(['fleet']);
  });

  test('tables are replaced while a view is looked at: it is looked at once more, all of it at one position', async () => {
    let looks = 0;
    const seen = await withLiveView(readDatabase(database.pool), async (view) => {
      looks += 1;
      const first = (await view.nodes({})).length;
      if (looks === 1) {
        await requestNodes(transactor, 5);
        await swap();
      }
      return { position: view.moment.position, first, second: (await view.nodes({})).length };
    });
    nodes += 5;
    expect({ looks, seen }).toEqual({ looks: 2, seen: { position: nodes, first: nodes, second: nodes } });
  });

  test('what was found out about replaced tables, such as an error: does not count either', async () => {
    let looks = 0;
    const seen = await withLiveView(readDatabase(database.pool), async (view) => {
      looks += 1;
      if (looks > 1) return view.moment.position;
      await swap();
      throw new Error('a falsehood');
    });
    expect(seen).toBe(nodes);
  });

  test('a reader stays in the replaced tables: the rebuild does not wait for it, the next one drops them', async () => {
    const reader = await database.pool.connect();
    try {
      await reader.query('BEGIN');
      await reader.query('SELECT count(*) FROM fleet.fleet_nodes');
      await rebuild(database.pool);
      expect(await schemas()).toEqual(['fleet', expect.stringMatching(/^fleet_replaced_\d+$/)]);
    } finally {
      await reader.query('ROLLBACK');
      reader.release();
    }
    await rebuild(database.pool);
    expect(await schemas()).toEqual(['fleet']);
  });
});

test('a snapshot in which a statement failed: its connection comes back without it', async () => {
  const pool = createPool({ url: database.url, program: 'test', limits: READER_LIMITS, max: 1 });
  try {
    await expect(readSnapshot(pool, (client) => client.query('SELECT 1 / 0'))).rejects.toThrow('division by zero');
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  } finally {
    await pool.end();
  }
});

test('tables are replaced during each read: says so, and does not read for ever', async () => {
  let generation = 1;
  const read = async (began: (generation: Generation) => void) => {
    began({ resolved: generation, visible: generation });
    generation += 1;
  };
  const ask = () => Promise.resolve({ resolved: generation, visible: generation });
  await expect(readOneGeneration(ask, read)).rejects.toThrow('the tables were replaced each time while they were read');
  expect(generation).toBe(6);
});

test('a snapshot from before the swap in which names lead to the new tables already: read again', async () => {
  const generations = [
    { resolved: 2, visible: 1 },
    { resolved: 2, visible: 2 },
  ];
  const read = async (began: (generation: Generation) => void) => {
    const generation = generations.shift();
    if (generation !== undefined) began(generation);
    return generation?.visible;
  };
  expect(await readOneGeneration(() => Promise.resolve({ resolved: 2, visible: 2 }), read)).toBe(2);
});
