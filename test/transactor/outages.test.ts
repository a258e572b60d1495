import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { requestNodeCommand } from '../../src/commands/node.ts';
import { WRITER_LIMITS } from '../../src/database/connect.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import { LogConflictError, type LogEngine } from '../../src/log/event-log.ts';
import { postgresLogEngine } from '../../src/log/postgres/postgres-event-log.ts';
import type { Queryable } from '../../src/log/postgres/reader.ts';
import type { TransactorOptions } from '../../src/transactor/transactor.ts';
import { type DatabaseRoad, openRoad } from '../gateway/support/database-road.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { execute, nodeRequest, OPERATOR, testTransactor } from '../support/fleet.ts';

let database: TestDatabase;
let road: DatabaseRoad;
beforeEach(async () => {
  [database, road] = await Promise.all([createTestDatabase(), openRoad()]);
});
afterEach(async () => {
  await road[Symbol.asyncDispose]();
  await database.drop();
});

const far = (options: Partial<TransactorOptions> = {}) => testTransactor(road.via(database.url), options);
const eventCount = async () => Number((await database.pool.query('SELECT count(*) FROM log.events')).rows[0].count);
const BRIEF = { ...WRITER_LIMITS, statementMs: 200 };

describe('COMMIT was sent, and its answer never came', () => {
  test('the database is there again: decided once, and the caller hears it from the memory', async () => {
    const transactor = far();
    await execute(transactor, requestNodeCommand, nodeRequest());
    const committed = road.swallowCommit();
    // Decided a second time it would be refused, or find nothing to do.
    const outcome = await execute(transactor, requestNodeCommand, nodeRequest());
    await committed;
    expect(outcome).toEqual({ ok: true, events: [{ position: 2, type: 'node_provisioning_requested' }], reply: {} });
    expect(await eventCount()).toBe(2);
    await transactor.close();
  });

  test('the database stays away: outcome_unknown, and not decided for what came after it', async () => {
    const transactor = far({ patienceMs: 300, limits: BRIEF });
    await execute(transactor, requestNodeCommand, nodeRequest());
    const committed = road.swallowCommit(() => road.silence());
    const unclear = execute(transactor, requestNodeCommand, nodeRequest());
    const settled = await Promise.allSettled([
      unclear,
      committed.then(() => execute(transactor, requestNodeCommand, nodeRequest())),
    ]);
    expect(settled.map((each) => each.status === 'rejected' && each.reason.reason)).toEqual([
      'outcome_unknown',
      'database',
    ]);
    expect(await eventCount()).toBe(2);
    await transactor.close();
  });
});

describe('a database that falls silent', () => {
  test('every command is answered within the patience and one try, the last of a full queue too', async () => {
    const transactor = far({ patienceMs: 500, limits: BRIEF, maxBatch: 1 });
    await execute(transactor, requestNodeCommand, nodeRequest());
    road.silence();
    const started = performance.now();
    const given = Array.from({ length: 20 }, () => execute(transactor, requestNodeCommand, nodeRequest()));
    const settled = await Promise.allSettled(given);
    expect(settled.map((each) => each.status === 'rejected' && each.reason.reason)).toEqual(Array(20).fill('database'));
    expect(performance.now() - started).toBeLessThan(5_000);
    await transactor.close();
  });

  test('closed: ends within the patience and a goodbye, though its try would take longer', async () => {
    const transactor = far({ patienceMs: 300, limits: { ...WRITER_LIMITS, statementMs: 60_000 } });
    await execute(transactor, requestNodeCommand, nodeRequest());
    road.silence();
    const given = expect(execute(transactor, requestNodeCommand, nodeRequest())).rejects.toMatchObject({
      name: 'UnavailableError',
    });
    const started = performance.now();
    await transactor.close();
    expect(performance.now() - started).toBeLessThan(3_000);
    await given;
  });

  test('the server process is stopped: answered all the same', async () => {
    const transactor = testTransactor(database.url, { patienceMs: 100, limits: BRIEF, program: 'to be stopped' });
    await execute(transactor, requestNodeCommand, nodeRequest());
    const { rows } = await database.pool.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'pushleft to be stopped%'`,
    );
    const pid = rows[0]?.pid ?? 0;
    expect(pid).toBeGreaterThan(0);
    process.kill(pid, 'SIGSTOP');
    try {
      await expect(execute(transactor, requestNodeCommand, nodeRequest())).rejects.toMatchObject({
        reason: 'database',
      });
      await transactor.close();
    } finally {
      process.kill(pid, 'SIGCONT');
    }
  });
});

describe('a busy lock', () => {
  test('for longer than the patience: lock_busy, and the program that holds it', async () => {
    const transactor = testTransactor(database.url, { patienceMs: 150, limits: { ...WRITER_LIMITS, lockMs: 100 } });
    const holder = await database.pool.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT pg_advisory_xact_lock($1)', [DECISION_LOCK]);
    await expect(execute(transactor, requestNodeCommand, nodeRequest())).rejects.toMatchObject({
      reason: 'lock_busy',
      message: expect.stringMatching(/^the decision lock is held by pushleft test-reader /),
    });
    await holder.query('ROLLBACK');
    holder.release();
    await transactor.close();
  });

  test('for longer than one try waits for it: tried again', async () => {
    const transactor = testTransactor(database.url, { limits: { ...WRITER_LIMITS, lockMs: 100 } });
    const holder = await database.pool.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT pg_advisory_xact_lock($1)', [DECISION_LOCK]);
    const given = execute(transactor, requestNodeCommand, nodeRequest());
    await holder.query('SELECT pg_sleep(0.5)');
    await holder.query('ROLLBACK');
    holder.release();
    expect((await given).ok).toBe(true);
    await transactor.close();
  });

  test('by default, waits for the lock less long than the patience lasts', () =>
    expect(WRITER_LIMITS.lockMs).toBeLessThan(5_000));
});

test('a log engine of its own: head and events go by it, and its conflict is the command’s', async () => {
  const heads: number[] = [];
  const moved: LogEngine<Queryable> = {
    writer: (session) => ({
      async head() {
        const head = await postgresLogEngine.writer(session).head();
        heads.push(head.position);
        return head;
      },
      append: () => Promise.reject(new LogConflictError('the log has moved')),
    }),
  };
  const transactor = testTransactor(database.url, { log: moved });
  const given = transactor.execute(requestNodeCommand, nodeRequest(), { actor: OPERATOR, commandId: randomUUID() });
  await expect(given).rejects.toThrow(LogConflictError);
  expect([heads, await eventCount()]).toEqual([[0], 0]);
  await transactor.close();
});
