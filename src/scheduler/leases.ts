import type pg from 'pg';
import { expireLeaseCommand } from '../commands/job.ts';
import { underTerm } from '../commands/term.ts';
import { DECISION_LOCK } from '../database/locks.ts';
import { giveAll, type Led, type PassReport } from './pass.ts';

const expireLease = underTerm(expireLeaseCommand);

/** How many leases one pass takes back; the next pass goes on. */
const MOST = 1_000;

/**
 * Takes back the jobs whose leases have run out. Whether a lease really has is decided under the lock on its guard; a heartbeat that
 * comes in between wins. Guards without a leased job (see {@link removeOrphanGuards}) are no leases, and must not stand in front of
 * those that are.
 */
export async function expireLeases(pool: pg.Pool, led: Led): Promise<PassReport> {
  const { rows } = await pool.query<{ job_id: string }>(
    `SELECT l.job_id FROM telemetry.job_leases l JOIN fleet.jobs j USING (job_id)
     WHERE l.expires_at <= clock_timestamp() AND j.status = 'leased' ORDER BY l.expires_at LIMIT $1`,
    [MOST],
  );
  return giveAll(led, expireLease, rows);
}

const MISSING = `
  FROM fleet.jobs j
  WHERE j.status = 'leased' AND NOT EXISTS (SELECT 1 FROM telemetry.job_leases l WHERE l.job_id = j.job_id)`;

/**
 * Gives leases whose guards were lost with telemetry one full fresh lease each. Looks without the lock first, because that is nearly
 * always all there is to do; writes under it, so that no lease is opened behind a decision's back.
 */
export async function restoreLostGuards(pool: pg.Pool, leaseMs: number): Promise<number> {
  const { rows } = await pool.query(`SELECT 1 ${MISSING} LIMIT 1`);
  if (rows.length === 0) return 0;
  return changeUnderLock(
    pool,
    `INSERT INTO telemetry.job_leases (job_id, node_id, token_sha256, expires_at)
     SELECT j.job_id, j.leased_to, j.lease_token_sha256, clock_timestamp() + $1 * interval '1 millisecond' ${MISSING}`,
    [leaseMs],
  );
}

const ORPHANED = `
  FROM telemetry.job_leases l
  WHERE NOT EXISTS (SELECT 1 FROM fleet.jobs j WHERE j.job_id = l.job_id AND j.status = 'leased')`;

/**
 * Removes guards whose jobs are not leased: telemetry that was restored from another moment than the log. Nobody ever closes them
 * otherwise. Looks without the lock first, and again under it.
 */
export async function removeOrphanGuards(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query(`SELECT 1 ${ORPHANED} LIMIT 1`);
  return rows.length === 0 ? 0 : changeUnderLock(pool, `DELETE ${ORPHANED}`, []);
}

/** Runs one statement under the decision lock and answers how many rows it changed. */
async function changeUnderLock(pool: pg.Pool, text: string, values: readonly unknown[]): Promise<number> {
  const client = await pool.connect();
  try {
    await client.query('BEGIN');
    await client.query(`SELECT pg_advisory_xact_lock(${DECISION_LOCK})`);
    const { rowCount } = await client.query(text, [...values]);
    await client.query('COMMIT');
    return rowCount ?? 0;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    client.release();
  }
}
