import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { revokeCertificatesCommand } from '../../src/commands/certificate.ts';
import { expireLeaseCommand } from '../../src/commands/job.ts';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import { dryRun } from '../../src/transactor/dry-run.ts';
import { fleetMaker } from '../cli/support/fleet.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';

const NODE = '11111111-1111-4111-8111-111111111111';

let database: TestDatabase;
let pool: ReturnType<typeof createPool>;

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ url: database.url, program: 'test', limits: READER_LIMITS, max: 1 });
  await using fleet = fleetMaker(database.url);
  await fleet.enrollNode(NODE, 'app-one');
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

describe('dry run', () => {
  test('a command that would append: says what, and appends nothing', async () => {
    const before = await pool.query('SELECT max(position) AS head FROM log.events');
    expect(await dryRun(pool, revokeCertificatesCommand, { node_id: NODE })).toEqual({
      ok: true,
      wouldAppend: ['certificates_revoked'],
      reply: {},
    });
    expect((await pool.query('SELECT max(position) AS head FROM log.events')).rows).toEqual(before.rows);
  });

  test('a command that is refused: the refusal', async () => {
    expect(await dryRun(pool, revokeCertificatesCommand, { node_id: 'nobody' })).toMatchObject({
      ok: false,
      refusal: { code: 'node_unknown' },
    });
  });

  test('a command that reads guard rows, which are locked: decided all the same', async () => {
    expect(await dryRun(pool, expireLeaseCommand, { job_id: 'none' })).toEqual({
      ok: true,
      wouldAppend: [],
      reply: {},
    });
  });

  test('somebody holds the decision lock: does not wait for it', async () => {
    const holder = await database.pool.connect();
    await holder.query('BEGIN');
    await holder.query('SELECT pg_advisory_xact_lock($1)', [DECISION_LOCK]);
    const decided = await dryRun(pool, revokeCertificatesCommand, { node_id: NODE });
    await holder.query('ROLLBACK');
    holder.release();
    expect(decided.ok).toBe(true);
  });
});
