import { randomUUID } from 'node:crypto';
import { Client, type Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { leaseJobCommand, queueJobCommand } from '../../src/commands/job.ts';
import { newJob } from '../../src/commands/new-job.ts';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import type { JobStatus } from '../../src/domain/job/state.ts';
import { Transactor } from '../../src/transactor/transactor.ts';
import { recordedMachines } from '../../src/up/machines.ts';
import { removePostgres } from '../../src/up/postgres/remove-postgres.ts';
import { startCli } from '../cli/support/run-cli.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { type RunningUp, startUp } from './support/local-fleet.ts';

/** The acceptance: a program that is stopped while it decides costs the others no more than this. */
const OTHERS_GO_ON_MS = 5_000;
/** Enough to keep an agent at work for seconds. */
const BUSY_JOBS = 25;

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let up: RunningUp;
let pool: Pool;
let operator: Transactor;
let gatewayLogin: Transactor;
let nodeId: string;
let fingerprint: string;

beforeAll(async () => {
  folder = await temporaryDirectory();
  up = startUp(folder.path, ['--nodes', '1', '--no-jobs'], {
    PUSHLEFT_SCHEDULER_INTERVAL_SECONDS: '0.2',
    PUSHLEFT_LEASE_SECONDS: '3',
  });
  await up.ready();
  const urlOf = async (audience: 'operator' | 'gateway') => (await up.environment(audience))['DATABASE_URL'] ?? '';
  pool = createPool({ url: await urlOf('operator'), program: 'test-reader', limits: READER_LIMITS, max: 2 });
  operator = new Transactor({ url: await urlOf('operator'), program: 'test-operator', programVersion: '0.0.0' });
  gatewayLogin = new Transactor({ url: await urlOf('gateway'), program: 'test-gateway', programVersion: '0.0.0' });
  const { rows } = await pool.query<{ node_id: string; fingerprint: string }>(
    'SELECT node_id, fingerprint FROM fleet.fleet_node_certificates',
  );
  [nodeId, fingerprint] = [rows[0]?.node_id ?? '', rows[0]?.fingerprint ?? ''];
}, 180_000);
afterAll(async () => {
  await Promise.all([operator.close(), gatewayLogin.close(), pool.end()]);
  await up[Symbol.asyncDispose]();
  await removePostgres(up.stateDir);
  await folder[Symbol.asyncDispose]();
});

describe('stopped (SIGSTOP) while it holds the decision lock', () => {
  test('an operator’s CLI: commands and agents go on within 5 s', async () => {
    await using lock = await takeLock();
    const cli = startCli(['job', 'queue', 'diagnose_host', '--node', 'app-fsn1-1'], { cwd: folder.path });
    await stopHoldingLock({ lock, program: 'cli', pid: cli.pid ?? 0 });
    await othersGoOn();
    cli.kill('SIGKILL');
  });

  test('the gateway: commands go on within 5 s, and once continued it serves its agents', async () => {
    const { pid } = await up.program('gateway');
    const jobIds = await Promise.all(Array.from({ length: BUSY_JOBS }, queue));
    await using lock = await takeLock();
    // The agent, which has done a few of them, makes the gateway want the lock for the next.
    await stopHoldingLock({ lock, program: 'gateway', pid });
    await commandDecided();
    process.kill(pid, 'SIGCONT');
    const allDone = async () => (await Promise.all(jobIds.map(isCompleted))).every(Boolean);
    await waitFor(allDone, { what: 'the jobs are completed', deadlineMs: 90_000, intervalMs: 100 });
  });

  test('the scheduler: commands and agents go on within 5 s', async () => {
    const { pid } = await up.program('scheduler');
    const [machine] = recordedMachines(up.stateDir);
    if (machine === undefined) throw new Error('there is no machine');
    // The agent sleeps: what it is given runs out. Either its waiting request gets the job or, should it have none, one in its name.
    process.kill(-machine.process.pid, 'SIGSTOP');
    const jobId = await queue();
    await leaseInItsName();
    await waitFor(() => hasStatus(jobId, 'leased'), { what: 'the job is leased' });
    await using lock = await takeLock();
    await stopHoldingLock({ lock, program: 'scheduler', pid });
    process.kill(-machine.process.pid, 'SIGCONT');
    await othersGoOn();
    process.kill(pid, 'SIGCONT');
    await waitFor(() => isCompleted(jobId), { what: 'the job is taken back and done', deadlineMs: 90_000 });
  });
});

interface HeldLock extends AsyncDisposable {
  release(): Promise<void>;
}

/** Takes the decision lock in a session of the test's own, so that a program can be caught at the very moment that it gets it. */
async function takeLock(): Promise<HeldLock> {
  const client = new Client({ connectionString: (await up.environment('owner'))['DATABASE_URL'] });
  await client.connect();
  await client.query('SELECT pg_advisory_lock($1)', [DECISION_LOCK]);
  const release = () => client.end();
  return { release, [Symbol.asyncDispose]: release };
}

/** Waits until the program waits for the lock, stops it, and lets it have the lock. */
async function stopHoldingLock(holder: { lock: HeldLock; program: string; pid: number }): Promise<void> {
  const { lock, program, pid } = holder;
  await waitFor(() => lockState(pid, 'NOT granted'), {
    what: `the ${program} waits for the lock`,
    deadlineMs: 30_000,
  });
  process.kill(pid, 'SIGSTOP');
  await lock.release();
  await waitFor(() => lockState(pid, 'granted'), { what: `the ${program} holds the lock` });
}

/** Programs name their process at the end of their session's name. */
async function lockState(pid: number, state: 'granted' | 'NOT granted'): Promise<boolean> {
  const { rowCount } = await pool.query(
    `SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)
     WHERE locktype = 'advisory' AND classid = 0 AND objid = $1 AND ${state} AND application_name LIKE $2`,
    [DECISION_LOCK, `pushleft %:${pid}`],
  );
  return (rowCount ?? 0) > 0;
}

async function leaseInItsName(): Promise<void> {
  const lease = { request_id: randomUUID(), kinds: ['diagnose_host'], token_sha256: 'a'.repeat(64), lease_ms: 500 };
  const actor = { kind: 'gateway', id: 'test' } as const;
  expect(await gatewayLogin.execute(leaseJobCommand, { fingerprint, ...lease }, { actor })).toMatchObject({ ok: true });
}

/** A command of an operator, and the agent's work, within the bound. */
async function othersGoOn(): Promise<void> {
  const startedAt = performance.now();
  const jobId = await queue();
  await waitFor(() => isCompleted(jobId), { what: 'the agent does a job', deadlineMs: OTHERS_GO_ON_MS });
  expect(performance.now() - startedAt).toBeLessThan(OTHERS_GO_ON_MS);
}

async function commandDecided(): Promise<void> {
  const startedAt = performance.now();
  await queue();
  expect(performance.now() - startedAt).toBeLessThan(OTHERS_GO_ON_MS);
}

async function queue(): Promise<string> {
  const jobId = randomUUID();
  const job = newJob({ jobId, kind: 'diagnose_host', nodeId, pool: null, payload: {} });
  if (!job.ok) throw new Error(job.problem);
  const outcome = await operator.execute(queueJobCommand, job.value, { actor: { kind: 'operator', id: 'test' } });
  expect(outcome).toMatchObject({ ok: true });
  return jobId;
}

function isCompleted(jobId: string): Promise<boolean> {
  return hasStatus(jobId, 'completed');
}

async function hasStatus(jobId: string, status: JobStatus): Promise<boolean> {
  const { rowCount } = await pool.query('SELECT FROM fleet.jobs WHERE job_id = $1 AND status = $2', [jobId, status]);
  return rowCount === 1;
}
