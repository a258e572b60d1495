import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { queueJobCommand } from '../../src/commands/job.ts';
import { newJob } from '../../src/commands/new-job.ts';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { verifyLog } from '../../src/log/postgres/verify-log.ts';
import type { AppendedEvent } from '../../src/transactor/command.ts';
import { Transactor } from '../../src/transactor/transactor.ts';
import { removePostgres } from '../../src/up/postgres/remove-postgres.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { type RunningUp, readPostgresProcess, startUp } from './support/local-fleet.ts';

/** The acceptance is a minute (`npm run torture:outages`); the agent's pauses have grown to half of their longest after this time. */
const OUTAGE_SECONDS = Number(process.env['PUSHLEFT_TEST_OUTAGE_SECONDS'] ?? 5);
const NEXT_LEASE_MS = 30_000;

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let up: RunningUp;
let pool: Pool;
let transactor: Transactor;
beforeAll(async () => {
  folder = await temporaryDirectory();
  up = startUp(folder.path, ['--nodes', '1', '--no-jobs', '--restart-after', String(OUTAGE_SECONDS)]);
  await up.ready();
  const url = (await up.environment('operator'))['DATABASE_URL'] ?? '';
  pool = createPool({ url, program: 'test', limits: READER_LIMITS, max: 2 });
  transactor = new Transactor({ url, program: 'test', programVersion: '0.0.0' });
}, 180_000);
afterAll(async () => {
  await transactor.close();
  await pool.end();
  await up[Symbol.asyncDispose]();
  await removePostgres(up.stateDir);
  await folder[Symbol.asyncDispose]();
});

const BOUND_MS = (2 * OUTAGE_SECONDS + 150) * 1_000;

describe('outages', () => {
  test(`gateway gone for ${OUTAGE_SECONDS} s: the next lease comes in time, and no acknowledged event is missing`, {
    timeout: BOUND_MS,
  }, async () => {
    const gateway = await up.program('gateway');
    await outage('gateway', () => process.kill(gateway.pid, 'SIGKILL'));
  });

  test(`PostgreSQL gone for ${OUTAGE_SECONDS} s: the next lease comes in time, and no acknowledged event is missing`, {
    timeout: BOUND_MS,
  }, async () => {
    const { pid } = await readPostgresProcess(up.stateDir);
    await outage('PostgreSQL', () => process.kill(pid, 'SIGKILL'));
  });
});

/** Kills a part under a writer's load, waits for its return, and looks at what is then. */
async function outage(name: string, kill: () => void): Promise<void> {
  const writer = writeUntilStopped();
  await waitFor(() => writer.acknowledged.length >= 3, { what: 'commands are acknowledged' });
  const told = up.output().length;
  kill();
  const back = () => up.output().slice(told).includes(`${name} runs again`);
  await waitFor(back, { what: `${name} runs again`, deadlineMs: OUTAGE_SECONDS * 2_000 + 90_000 });
  const before = writer.acknowledged.length;
  await waitFor(() => writer.acknowledged.length > before, { what: 'commands are acknowledged again' });
  const leasedAfterMs = await nextLease();
  await writer.stop();
  expect(leasedAfterMs).toBeLessThan(NEXT_LEASE_MS);
  expect(await missing(writer.acknowledged)).toEqual([]);
  expect(await verifyLog(pool)).toMatchObject({ fault: undefined });
}

/** Queues a job for the one node and waits until its agent has leased it. Answers how long that took. */
async function nextLease(): Promise<number> {
  const { rows } = await pool.query<{ node_id: string }>('SELECT node_id FROM fleet.fleet_nodes');
  const startedAt = performance.now();
  const jobId = randomUUID();
  await queue(jobId, { nodeId: rows[0]?.node_id ?? null, pool: null });
  const leased = `SELECT FROM log.events WHERE stream = $1 AND type = 'job_leased'`;
  await waitFor(async () => (await pool.query(leased, [`job-${jobId}`])).rowCount === 1, {
    what: 'the agent leases the job',
    deadlineMs: NEXT_LEASE_MS + 10_000,
  });
  return performance.now() - startedAt;
}

async function queue(jobId: string, target: { nodeId: string | null; pool: 'database' | null }) {
  const job = newJob({ jobId, kind: 'diagnose_host', ...target, payload: {} });
  if (!job.ok) throw new Error(job.problem);
  const outcome = await transactor.execute(queueJobCommand, job.value, { actor: { kind: 'operator', id: 'test' } });
  if (!outcome.ok) throw new Error(outcome.refusal.code);
  return outcome.events;
}

/** Gives one command after the other, and remembers the events of those that were answered. Nobody leases jobs of an empty pool. */
function writeUntilStopped() {
  const acknowledged: AppendedEvent[] = [];
  const stopping = new AbortController();
  const run = async () => {
    while (!stopping.signal.aborted) {
      const events = await queue(randomUUID(), { nodeId: null, pool: 'database' }).catch(() => []);
      acknowledged.push(...events);
      await delay(20);
    }
  };
  const running = run();
  return {
    acknowledged,
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

async function missing(acknowledged: readonly AppendedEvent[]): Promise<AppendedEvent[]> {
  const { rows } = await pool.query<AppendedEvent>('SELECT position, type FROM log.events');
  const there = new Map(rows.map(({ position, type }) => [position, type]));
  return acknowledged.filter(({ position, type }) => there.get(position) !== type);
}
