import pino from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { Liveness, type LivenessTime } from '../../src/gateway/liveness.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait-for.ts';
import { manualTicker } from './support/manual-ticker.ts';

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
  const liveness = new Liveness(
    pool,
    { program: 'gateway@test', details, probe: () => Promise.resolve(true) },
    pino({ level: 'silent' }),
  );
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

describe('what a flush tells the clock of silence', () => {
  /** A gateway's liveness whose probe answers `probe`, not started: it flushes when the test says. */
  function newLiveness(program: string, probe = () => Promise.resolve(false), time?: LivenessTime) {
    const beacon = { program, details: () => ({ other: 1 }), probe };
    return new Liveness(database.pool, beacon, pino({ level: 'silent' }), time);
  }
  const beaconOf = async (program: string) =>
    (await database.pool.query('SELECT details FROM telemetry.programs WHERE program = $1', [program])).rows[0]
      ?.details;
  const heardMsOf = async (nodeId: string) =>
    (await database.pool.query('SELECT heard_ms FROM telemetry.node_liveness WHERE node_id = $1', [nodeId])).rows[0];

  test('an agent was heard since the last one: counted; nobody was: not', async () => {
    const liveness = newLiveness('g1');
    await liveness.flush();
    expect(await beaconOf('g1')).toEqual({ other: 1, reached: 0 });
    liveness.heard('n1', 1_000);
    await liveness.flush();
    await liveness.flush();
    expect(await beaconOf('g1')).toEqual({ other: 1, reached: 1 });
  });

  test('it failed: counted with the next one that is written', async () => {
    const away = createPool({ url: 'postgres://x@127.0.0.1:1/x', program: 'away', limits: READER_LIMITS, max: 1 });
    let pool = away;
    const query = (statement: { name: string; text: string; values: unknown[] }) => pool.query(statement);
    const beacon = { program: 'g2', details: () => ({}), probe: () => Promise.resolve(false) };
    const liveness = new Liveness({ query } as typeof away, beacon, pino({ level: 'silent' }));
    liveness.heard('n2', 1_000);
    await expect(liveness.written()).rejects.toThrow('the database does not answer');
    expect(await beaconOf('g2')).toBeUndefined();
    pool = database.pool;
    await liveness.written();
    expect([await beaconOf('g2'), await heardMsOf('n2')]).toEqual([{ reached: 1 }, { heard_ms: null }]);
    await away.end();
  });

  test('nobody is heard and the probe goes through: counted all the same', async () => {
    const ticks = manualTicker();
    const time = { ticker: ticks.ticker, now: () => 0 };
    const liveness = newLiveness('g3', () => Promise.resolve(true), time);
    await liveness.start();
    for (let tick = 0; tick < 3; tick += 1) await ticks.tick();
    expect(await beaconOf('g3')).toEqual({ other: 1, reached: 1 });
    await liveness.close();
  });

  test('what is heard is not written for longer than 15 s: stalled, until it is written again', async () => {
    let nowMs = 1_000;
    const liveness = newLiveness('g5', undefined, { ticker: manualTicker().ticker, now: () => nowMs });
    await liveness.flush();
    nowMs += 15_000;
    expect(liveness.stalled).toBe(false);
    nowMs += 1;
    expect(liveness.stalled).toBe(true);
    await liveness.flush();
    expect(liveness.stalled).toBe(false);
  });

  test('the clock shows something: the node was heard at that, also when it showed more before', async () => {
    const liveness = newLiveness('g4');
    for (const clock of [70_000, 500]) {
      await database.pool.query(
        `INSERT INTO telemetry.scheduler (id, term, holder, heard_ms) VALUES ('fleet', 1, 'test', $1)
         ON CONFLICT (id) DO UPDATE SET heard_ms = excluded.heard_ms`,
        [clock],
      );
      liveness.heard('n4', 1_000);
      await liveness.flush();
      expect(await heardMsOf('n4')).toEqual({ heard_ms: clock });
    }
  });
});
