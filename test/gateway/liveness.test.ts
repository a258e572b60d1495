import pino from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { Liveness } from '../../src/gateway/liveness.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait-for.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Rows of telemetry.node_liveness. */
const heard = async () =>
  (await database.pool.query('SELECT node_id FROM telemetry.node_liveness ORDER BY node_id')).rows.map(
    (row) => row.node_id,
  );

test('a flush is held up: there is no second one, and what is heard meanwhile is written at the close', async () => {
  const pool = createPool({ url: database.url, program: 'flushing', limits: READER_LIMITS, max: 8 });
  let beacons = 0;
  const details = () => ({ beacon: (beacons += 1) });
  const liveness = new Liveness(pool, { program: 'gateway@test', details }, pino({ level: 'silent' }));
  await liveness.start();
  const holder = await database.pool.connect();
  await holder.query('BEGIN');
  await holder.query('LOCK TABLE telemetry.node_liveness IN ACCESS EXCLUSIVE MODE');
  liveness.heard('early', 1_000);
  const flushes = [liveness.flush(), liveness.flush(), liveness.flush()];
  liveness.heard('late', 1_000);
  await waitFor(
    async () => {
      const { rows } = await database.pool.query<{ waiting: number }>(
        `SELECT count(*) AS waiting FROM pg_locks l JOIN pg_stat_activity a USING (pid)
         WHERE NOT l.granted AND a.application_name LIKE 'pushleft flushing%'`,
      );
      return rows[0]?.waiting === 1;
    },
    { what: 'the flush waits' },
  );
  const closed = liveness.close();
  await holder.query('ROLLBACK');
  holder.release();
  await Promise.all([...flushes, closed]);
  // The first beacon, the flush that was held up, the last one.
  expect([await heard(), beacons]).toEqual([['early', 'late'], 3]);
  await pool.end();
});
