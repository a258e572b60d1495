import { randomUUID } from 'node:crypto';
import pino from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { queueJobCommand } from '../../src/commands/job.ts';
import { requestNodeCommand } from '../../src/commands/node.ts';
import { READER_LIMITS } from '../../src/database/connect.ts';
import { readLockSessions } from '../../src/database/lock-sessions.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import { append } from '../../src/domain/decision.ts';
import { jobStream } from '../../src/domain/stream.ts';
import { Leadership } from '../../src/scheduler/leader.ts';
import { expireLeases, removeOrphanGuards, restoreLostGuards } from '../../src/scheduler/leases.ts';
import type { Led } from '../../src/scheduler/pass.ts';
import { type Scheduler, startScheduler } from '../../src/scheduler/scheduler.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { execute, nodeRequest, testTransactor } from '../support/fleet.ts';
import { refusal } from '../support/given.ts';
import { waitFor } from '../support/wait-for.ts';

let database: TestDatabase;
let transactor: Transactor;

beforeAll(async () => {
  database = await createTestDatabase();
  transactor = testTransactor(database.url);
});

afterAll(async () => {
  await transactor.close();
  await database.drop();
});

function leadership({ holder = 'test', idleMs = 60_000 } = {}): Leadership {
  return new Leadership({ connection: { url: database.url, program: 'test', limits: READER_LIMITS }, holder, idleMs });
}

/** A term of the test's own, in which nobody leads any more and nobody else has begun one. */
async function lead(): Promise<Led> {
  const leader = leadership();
  const term = await waitFor(() => leader.check(), { what: 'the test leads' });
  await leader.close();
  return { transactor, actor: { kind: 'scheduler', id: 'test' }, term };
}

const SILENCE = { unhealthyAfterMs: 90_000, lostAfterMs: 300_000 };

/** A job that a node has leased, its lease ending `expiresInMs` from now. */
async function leasedJob({ expiresInMs = -1, maxAttempts = 3 } = {}): Promise<string> {
  const [jobId, node] = [randomUUID(), nodeRequest()];
  await execute(transactor, requestNodeCommand, node);
  const job = { job_id: jobId, kind: 'diagnose_host', node_id: node.node_id, pool: null, org_id: null };
  await execute(transactor, queueJobCommand, {
    ...job,
    payload: '{}',
    payload_sha256: 'a'.repeat(64),
    max_attempts: maxAttempts,
  });
  const lease = { job_id: jobId, node_id: node.node_id, attempt: 1, request_id: randomUUID(), reissued: false };
  await execute(
    transactor,
    {
      name: 'lease',
      load: () => Promise.resolve(undefined),
      decide: (_command: null, _state, { now }) =>
        append(jobStream(jobId), {
          type: 'job_leased',
          data: { ...lease, token_sha256: 'b'.repeat(64), expires_at: now + expiresInMs },
        }),
    },
    null,
  );
  return jobId;
}

async function eventsOf(jobId: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ type: string }>(
    'SELECT type FROM log.events WHERE stream = $1 ORDER BY revision',
    [jobStream(jobId)],
  );
  return rows.map((row) => row.type);
}

describe('lease expiry', () => {
  test('run out: back to the queue', async () => {
    const job = await leasedJob();
    await expireLeases(database.pool, await lead());
    expect(await eventsOf(job)).toEqual(['job_queued', 'job_leased', 'job_lease_expired']);
  });

  test('run out for the last time: failed', async () => {
    const job = await leasedJob({ maxAttempts: 1 });
    await expireLeases(database.pool, await lead());
    expect(await eventsOf(job)).toEqual(['job_queued', 'job_leased', 'job_lease_expired', 'job_failed']);
  });

  test('still running: left alone', async () => {
    const job = await leasedJob({ expiresInMs: 60_000 });
    await expireLeases(database.pool, await lead());
    expect(await eventsOf(job)).toEqual(['job_queued', 'job_leased']);
  });

  test('repeated: no new event', async () => {
    const job = await leasedJob();
    await expireLeases(database.pool, await lead());
    await expireLeases(database.pool, await lead());
    expect(await eventsOf(job)).toHaveLength(3);
  });
});

describe('a guard that was lost with telemetry', () => {
  test('one full fresh lease, then as usual', async () => {
    const job = await leasedJob();
    await database.pool.query('DELETE FROM telemetry.job_leases WHERE job_id = $1', [job]);
    await expireLeases(database.pool, await lead());
    expect(await eventsOf(job)).toHaveLength(2);
    expect(await restoreLostGuards(database.pool, 60_000)).toBe(1);
    const { rows } = await database.pool.query<{ left: number }>(
      `SELECT extract(epoch FROM expires_at - clock_timestamp())::int AS left FROM telemetry.job_leases WHERE job_id = $1`,
      [job],
    );
    expect(rows[0]?.left).toBeGreaterThan(50);
    expect(await restoreLostGuards(database.pool, 60_000)).toBe(0);
  });

  test('given back by a running scheduler in a session that cannot hold the decision lock while it is stopped', async () => {
    const job = await leasedJob({ expiresInMs: 60_000 });
    await database.pool.query(`
      CREATE TABLE public.restored AS SELECT '' AS job_id, '' AS idle_limit WITH NO DATA;
      CREATE FUNCTION public.note_limit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.restored VALUES (NEW.job_id, current_setting('idle_in_transaction_session_timeout'));
        RETURN NEW;
      END $$;
      CREATE TRIGGER note_limit BEFORE INSERT ON telemetry.job_leases FOR EACH ROW EXECUTE FUNCTION public.note_limit()`);
    await database.pool.query('DELETE FROM telemetry.job_leases WHERE job_id = $1', [job]);
    const config = {
      databaseUrl: database.url,
      programVersion: '0',
      intervalMs: 20,
      leaseMs: 60_000,
      silence: SILENCE,
    };
    const scheduler = startScheduler(config, pino({ level: 'silent' }));
    const noted = async () => (await database.pool.query('SELECT * FROM public.restored')).rows;
    await waitFor(async () => (await noted()).length > 0, { what: 'the guard is given back' });
    await scheduler.close();
    expect(await noted()).toEqual([{ job_id: job, idle_limit: '3s' }]);
    await database.pool.query('DROP TRIGGER note_limit ON telemetry.job_leases');
  });
});

describe('guards of jobs that are not leased, after a restore of telemetry from another moment', () => {
  const orphan = (count: number) =>
    database.pool.query(
      `INSERT INTO telemetry.job_leases (job_id, node_id, token_sha256, expires_at)
       SELECT 'orphan-' || n, 'node', 'token', clock_timestamp() - interval '1 day' FROM generate_series(1, $1) AS n`,
      [count],
    );
  const orphans = async () =>
    (await database.pool.query(`SELECT 1 FROM telemetry.job_leases WHERE job_id LIKE 'orphan-%'`)).rowCount;

  test('more than one pass takes: the leases behind them are taken back all the same', async () => {
    await orphan(1_001);
    const job = await leasedJob();
    await expireLeases(database.pool, await lead());
    expect(await eventsOf(job)).toEqual(['job_queued', 'job_leased', 'job_lease_expired']);
    await removeOrphanGuards(database.pool);
  });

  test('removed; the guard of a leased job stays', async () => {
    const job = await leasedJob({ expiresInMs: 60_000 });
    await orphan(2);
    expect(await removeOrphanGuards(database.pool)).toBe(2);
    expect(await orphans()).toBe(0);
    const { rowCount } = await database.pool.query('SELECT 1 FROM telemetry.job_leases WHERE job_id = $1', [job]);
    expect(rowCount).toBe(1);
  });
});

describe('replicas', () => {
  const running: Scheduler[] = [];
  const start = () => {
    const config = {
      databaseUrl: database.url,
      programVersion: '0',
      intervalMs: 20,
      leaseMs: 60_000,
      silence: SILENCE,
    };
    const scheduler = startScheduler(config, pino({ level: 'silent' }));
    running.push(scheduler);
    return scheduler;
  };
  afterEach(() => Promise.all(running.splice(0).map((scheduler) => scheduler.close())));

  test('running: takes expired leases back by itself', async () => {
    start();
    const job = await leasedJob();
    await waitFor(async () => (await eventsOf(job)).length === 3, { what: 'the lease is taken back' });
  });

  test('two of them: one leads; it ends: the other leads, in the next term', async () => {
    const [first, second] = [leadership({ holder: 'first' }), leadership({ holder: 'second' })];
    const term = await waitFor(() => first.check(), { what: 'the first leads' });
    expect([await second.check(), await first.check()]).toEqual([undefined, term]);
    await first.close();
    expect(await waitFor(() => second.check(), { what: 'the second leads' })).toBe(term + 1);
    await second.close();
  });

  test('a leader that has stopped asking: loses its session, another leads, and its commands are refused', async () => {
    const job = await leasedJob();
    const [stopped, other] = [leadership({ idleMs: 200 }), leadership()];
    const term = await waitFor(() => stopped.check(), { what: 'the first leads' });
    const next = await waitFor(() => other.check(), { what: 'the other leads' });
    const late = await expireLeases(database.pool, { transactor, actor: { kind: 'scheduler', id: 'stopped' }, term });
    expect(late).toEqual({
      done: 0,
      refused: [{ command: { job_id: job }, refusal: refusal('term_superseded', { term: next, given_term: term }) }],
      failed: [],
    });
    expect(await eventsOf(job)).toEqual(['job_queued', 'job_leased']);
    expect(await stopped.check()).toBeUndefined();
    await Promise.all([stopped.close(), other.close()]);
  });

  describe('a command of the old leader and the beginning of the next term meet at the lock', () => {
    /** Lets both wait for the lock in this order; resolves with how many leases the old leader took back. */
    async function meet(first: 'command' | 'term'): Promise<[taken: number, events: string[]]> {
      const old = await lead();
      await expireLeases(database.pool, old);
      const [job, next, holder] = [await leasedJob(), leadership(), await database.pool.connect()];
      await holder.query(`SELECT pg_advisory_lock(${DECISION_LOCK})`);
      const give = {
        command: () => expireLeases(database.pool, old),
        term: () => waitFor(() => next.check(), { what: 'the next leads' }),
      };
      const waiting = (count: number) =>
        waitFor(
          async () => (await readLockSessions(database.pool)).filter(({ granted }) => !granted).length === count,
          {
            what: `${count} wait for the lock`,
          },
        );
      const begun = give[first]();
      await waiting(1);
      const second = give[first === 'command' ? 'term' : 'command']();
      await waiting(2);
      await holder.query(`SELECT pg_advisory_unlock(${DECISION_LOCK})`);
      holder.release();
      const [one, other] = await Promise.all([begun, second]);
      await next.close();
      const report = typeof one === 'number' ? other : one;
      return [typeof report === 'number' ? Number.NaN : report.done, await eventsOf(job)];
    }

    test('the command comes first: decided', async () =>
      expect(await meet('command')).toEqual([1, ['job_queued', 'job_leased', 'job_lease_expired']]));

    test('the term comes first: the command is refused', async () =>
      expect(await meet('term')).toEqual([0, ['job_queued', 'job_leased']]));
  });

  test('telemetry is lost: the next term is none that was before in this log', async () => {
    const { term } = await lead();
    await database.pool.query('TRUNCATE telemetry.scheduler');
    await database.pool.query(
      `INSERT INTO telemetry.node_liveness (node_id, last_seen_at, heard_ms) VALUES ('n', now(), 70000)`,
    );
    expect((await lead()).term).toBeGreaterThan(term);
    const { rows } = await database.pool.query('SELECT heard_ms FROM telemetry.scheduler');
    expect(rows).toEqual([{ heard_ms: 70_000 }]);
  });
});
