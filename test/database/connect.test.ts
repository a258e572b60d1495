import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createClient, createPool, isConnectionError, READER_LIMITS } from '../../src/database/connect.ts';
import { type DatabaseRoad, openRoad } from '../gateway/support/database-road.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const BRIEF = { ...READER_LIMITS, statementMs: 200 };

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('a database that falls silent', () => {
  let road: DatabaseRoad;
  beforeEach(async () => {
    road = await openRoad();
  });
  afterEach(() => road[Symbol.asyncDispose]());

  const options = () => ({ url: road.via(database.url), program: 'test', limits: BRIEF });
  const error = (asked: Promise<unknown>) => asked.then(() => undefined).catch((thrown: unknown) => thrown);

  test('asked through a pool: the connection is lost a second after the statement limit; the pool ends', async () => {
    const pool = createPool({ ...options(), max: 1 });
    await pool.query('SELECT 1');
    road.silence();
    const lost = await error(pool.query('SELECT 1'));
    expect(lost).toMatchObject({ message: 'the database was silent for 1200 ms' });
    expect(isConnectionError(lost)).toBe(true);
    await pool.end();
  });

  test('asked in a transaction: every question fails at once, and nobody is given the connection again', async () => {
    const pool = createPool({ ...options(), max: 1 });
    const client = await pool.connect();
    await client.query('BEGIN');
    road.silence();
    const asked = [error(client.query('SELECT 1')), error(client.query('ROLLBACK'))];
    expect((await Promise.all(asked)).map(isConnectionError)).toEqual([true, true]);
    client.release();
    expect(pool.totalCount).toBe(0);
    await pool.end();
  });

  test('ended while nothing is asked: the goodbye is not waited for', async () => {
    const client = createClient(options());
    await client.connect();
    await client.query('SELECT 1');
    road.silence();
    const started = performance.now();
    await client.end();
    expect(performance.now() - started).toBeLessThan(3_000);
  });

  test('no question open: a connection that listens is left alone, however long nothing comes', async () => {
    const client = createClient(options());
    await client.connect();
    await client.query('LISTEN something');
    const heard = new Promise((resolve) => client.on('notification', ({ payload }) => resolve(payload)));
    await database.pool.query('SELECT pg_sleep(2)');
    await database.pool.query(`NOTIFY something, 'still here'`);
    expect(await heard).toBe('still here');
    await client.end();
  });
});

test('no statement limit: an answer may take as long as it likes', async () => {
  const client = createClient({ url: database.url, program: 'test', limits: { ...BRIEF, statementMs: 0 } });
  await client.connect();
  expect((await client.query('SELECT pg_sleep(1.5)')).rowCount).toBe(1);
  await client.end();
});

describe('trouble of a connection', () => {
  test('a socket that is not there: yes', async () => {
    const client = createClient({ url: 'postgres:///x?host=/nowhere', program: 'test', limits: BRIEF });
    const missing = await client.connect().catch((error: unknown) => error);
    expect(missing).toMatchObject({ code: 'ENOENT', syscall: 'connect' });
    expect(isConnectionError(missing)).toBe(true);
  });

  test('a file that is not there: no', async () => {
    const missing = await readFile('/nowhere/at-all').catch((error: unknown) => error);
    expect(missing).toMatchObject({ code: 'ENOENT' });
    expect(isConnectionError(missing)).toBe(false);
  });
});
