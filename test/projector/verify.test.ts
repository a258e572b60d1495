import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { recordCapacityCommand } from '../../src/commands/node.ts';
import { postgresEventLog } from '../../src/log/postgres/postgres-event-log.ts';
import { rebuild } from '../../src/projector/rebuild.ts';
import { foldAt } from '../../src/projector/time-travel.ts';
import { verifyProjections } from '../../src/projector/verify.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { execute, requestNodes, testTransactor } from '../support/fleet.ts';

let database: TestDatabase;
let transactor: Transactor;
let nodes: string[];

beforeAll(async () => {
  database = await createTestDatabase();
  transactor = testTransactor(database.url);
  nodes = await requestNodes(transactor, 20);
});

afterAll(async () => {
  await transactor.close();
  await database.drop();
});

describe('projections verify', () => {
  test('untouched: every row compared, no difference', async () => {
    expect(await verifyProjections(database.pool)).toEqual({ position: 20, rows: 40, differences: [] });
  });

  test('a row that was changed: names table, key and column', async () => {
    await database.pool.query(`UPDATE fleet.fleet_nodes SET region = 'hel1' WHERE node_id = $1`, [nodes[3]]);
    expect((await verifyProjections(database.pool)).differences).toEqual([
      { table: 'fleet_nodes', key: nodes[3], kind: 'differs', columns: ['region'] },
    ]);
  });

  test('a row that was removed and one that was put in: both named', async () => {
    await rebuild(database.pool);
    await database.pool.query('DELETE FROM fleet.fleet_events WHERE position = 5');
    await database.pool.query(`INSERT INTO fleet.pool_firewalls VALUES ('build', 1, repeat('a', 64), '2026-01-01')`);
    const { differences } = await verifyProjections(database.pool);
    expect(differences.map(({ table, key, kind }) => ({ table, key, kind }))).toEqual([
      { table: 'pool_firewalls', key: 'build', kind: 'unexpected' },
      { table: 'fleet_events', key: 5, kind: 'missing' },
    ]);
  });

  test('tampered with, then rebuilt: no difference', async () => {
    await rebuild(database.pool);
    expect((await verifyProjections(database.pool)).differences).toEqual([]);
  });

  test('while commands go on: a difference in time is no difference', async () => {
    const stop = { now: false };
    const load = (async () => {
      while (!stop.now) await requestNodes(transactor, 5);
    })();
    for (let round = 0; round < 3; round += 1) {
      expect((await verifyProjections(database.pool)).differences).toEqual([]);
    }
    stop.now = true;
    await load;
  });
});

describe('rebuild', () => {
  test('while commands go on: they wait for it and none is lost', async () => {
    const before = (await postgresEventLog(database.pool).head()).position;
    const load = requestNodes(transactor, 50);
    await rebuild(database.pool);
    await load;
    expect((await postgresEventLog(database.pool).head()).position).toBe(before + 50);
    expect((await verifyProjections(database.pool)).differences).toEqual([]);
  });

  test('fails on the way: the live tables stay as they were', async () => {
    const [{ count: before } = { count: -1 }] = (
      await database.pool.query<{ count: number }>('SELECT count(*) FROM fleet.fleet_nodes')
    ).rows;
    const failing = rebuild(database.pool, () => {
      throw new Error('killed here');
    });
    await expect(failing).rejects.toThrow('killed here');
    const { rows } = await database.pool.query<{ count: number }>('SELECT count(*) FROM fleet.fleet_nodes');
    expect(rows[0]?.count).toBe(before);
  });
});

describe('time travel', () => {
  test('at a position: rows as they were then, whatever happened later', async () => {
    const log = postgresEventLog(database.pool);
    const node = nodes[0] ?? '';
    const capacity = { node_id: node, cpu_millis: 3500, memory_mb: 7168, disk_gb: 60, architecture: 'x86' as const };
    const outcome = await execute(transactor, recordCapacityCommand, capacity);
    const position = outcome.ok ? (outcome.events[0]?.position ?? 0) : 0;
    const then = await foldAt(log, ['fleet_nodes'], { position: position - 1 });
    const now = await foldAt(log, ['fleet_nodes'], { position });
    expect(then.rows('fleet_nodes').get(node)?.cpu_millis).toBe(null);
    expect(now.rows('fleet_nodes').get(node)?.cpu_millis).toBe(3500);
  });

  test('at a time before everything: empty', async () => {
    const state = await foldAt(postgresEventLog(database.pool), ['fleet_nodes'], { at: 1 });
    expect(state.rows('fleet_nodes').size).toBe(0);
  });

  test('at the head: equal to the live table', async () => {
    const state = await foldAt(postgresEventLog(database.pool), ['fleet_nodes'], 'head');
    const { rows } = await database.pool.query('SELECT * FROM fleet.fleet_nodes');
    expect(new Map(rows.map((row) => [row.node_id, row]))).toEqual(state.rows('fleet_nodes'));
  });
});
