import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { postgresEventLog } from '../../src/log/postgres/postgres-event-log.ts';
import { verifyLog } from '../../src/log/postgres/verify-log.ts';
import { verifyProjections } from '../../src/projector/verify.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWorker, type Worker } from '../support/worker.ts';

let database: TestDatabase;
const workers: Worker[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
});

afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
});

afterAll(() => database.drop());

function start(path: string, env: Record<string, string> = {}): Worker {
  const worker = startWorker(path, { DATABASE_URL: database.url, ...env });
  workers.push(worker);
  return worker;
}

const headPosition = async () => (await postgresEventLog(database.pool).head()).position;
const positions = (worker: Worker) => worker.lines.map(Number);

/**
 * One run: two writers under load, a reader whose REPEATABLE READ snapshot stays open, a follower that is killed and resumed from what
 * it printed, and one writer killed with -9. How long each lasts comes from the property's numbers (counted in events, not in time).
 */
async function run({ kills, eventsBetween }: { kills: number; eventsBetween: number }): Promise<void> {
  const before = await headPosition();
  const followed: number[] = [];
  const reader = await database.pool.connect();
  const [first, second] = [start('transactor/load-worker.ts'), start('transactor/load-worker.ts')];
  try {
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    await reader.query('SELECT count(*) FROM log.events');
    for (let kill = 0; kill <= kills; kill += 1) {
      const follower = start('transactor/follow-worker.ts', { FOLLOW_AFTER: String(followed.at(-1) ?? before) });
      const enough = () => follower.lines.length >= eventsBetween;
      await waitFor(enough, { what: 'the follower has seen enough', deadlineMs: 60_000 });
      await follower.kill();
      followed.push(...positions(follower));
    }
    await reader.query('COMMIT');
  } finally {
    await Promise.all([first.kill(), second.kill()]);
    reader.release(true);
  }

  const head = await headPosition();
  expect(followed).toEqual(Array.from({ length: followed.length }, (_, i) => before + 1 + i));
  const acknowledged = [...positions(first), ...positions(second)];
  expect(new Set(acknowledged).size).toBe(acknowledged.length);
  expect(Math.max(...acknowledged)).toBeLessThanOrEqual(head);
  expect(first.lines.length > 0 && second.lines.length > 0).toBe(true);
  expect(await verifyLog(database.pool)).toMatchObject({ position: head, fault: undefined });
  expect(await verifyProjections(database.pool)).toMatchObject({ position: head, differences: [] });
}

test('two transactor processes under load: gapless, chained, folds equal to a rebuild, followers miss and repeat nothing', async () => {
  const seed = Number(process.env['PUSHLEFT_TEST_SEED'] ?? Date.now() % 2 ** 31);
  console.log(`seed ${seed} (PUSHLEFT_TEST_SEED repeats it)`);
  const shape = fc.record({ kills: fc.integer({ min: 1, max: 3 }), eventsBetween: fc.integer({ min: 1, max: 300 }) });
  await fc.assert(fc.asyncProperty(shape, run), { seed, numRuns: 4, endOnFailure: true });
}, 400_000);

test('one of two writers is stopped in the middle of a batch: the other goes on within 5 s', async () => {
  const [stopped, going] = [start('transactor/load-worker.ts'), start('transactor/load-worker.ts')];
  await waitFor(() => stopped.lines.length > 50 && going.lines.length > 50, { what: 'both write', deadlineMs: 60_000 });
  await stopInTransaction(stopped);
  const before = going.lines.length;
  const since = performance.now();
  await waitFor(() => going.lines.length > before + 16, { what: 'the other writes again', deadlineMs: 10_000 });
  expect(performance.now() - since).toBeLessThan(5_000);
  const waited = stopped.lines.length;
  await stopped.kill('SIGCONT');
  await waitFor(() => stopped.lines.length > waited + 16, { what: 'the stopped one writes again', deadlineMs: 60_000 });
  await Promise.all([stopped.kill(), going.kill()]);
  expect((await verifyLog(database.pool)).fault).toBe(undefined);
}, 240_000);

/** Stops a process just when its session holds the lock: looks after each stop, and lets it go on when it was between two batches. */
async function stopInTransaction(worker: Worker): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt += 1) {
    await worker.kill('SIGSTOP');
    const { rows } = await database.pool.query(
      `SELECT 1 FROM pg_stat_activity a JOIN pg_locks l ON l.pid = a.pid AND l.locktype = 'advisory' AND l.granted
       WHERE a.state = 'idle in transaction' AND a.application_name LIKE $1`,
      [`%:${worker.child.pid}`],
    );
    if (rows.length > 0) return;
    await worker.kill('SIGCONT');
  }
  throw new Error('never caught the process inside a batch');
}
