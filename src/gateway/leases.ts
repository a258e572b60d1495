import type pg from 'pg';
import { DECISION_LOCK } from '../database/locks.ts';
import { asUnavailable, reading } from './database.ts';

/** A lease as its holder claims it. */
export interface ClaimedLease {
  readonly jobId: string;
  readonly nodeId: string;
  readonly tokenSha256: string;
}

/** `writers`: sessions that lose the decision lock when they stall. */
interface LeasePools {
  readonly pool: pg.Pool;
  readonly writers: pg.Pool;
}

const EXTEND = `
  UPDATE telemetry.job_leases
  SET expires_at = greatest(expires_at, clock_timestamp() + $4 * interval '1 millisecond')
  WHERE job_id = $1 AND node_id = $2 AND token_sha256 = $3 AND expires_at > clock_timestamp()`;

const UNGUARDED = `
  FROM fleet.jobs j
  WHERE j.job_id = $1 AND j.leased_to = $2 AND j.lease_token_sha256 = $3 AND j.status = 'leased'
    AND NOT EXISTS (SELECT 1 FROM telemetry.job_leases l WHERE l.job_id = j.job_id)`;

/**
 * Extends a lease by one full term from now, unless it has run out, was fenced or is somebody else's. One conditional UPDATE, no
 * event: expiry and completion hold the same row locked while they decide, so either this or that wins. A lease whose guard was lost
 * with telemetry gets one full fresh one. Throws UnavailableError.
 */
export async function extendLease(
  { pool, writers }: LeasePools,
  lease: ClaimedLease,
  leaseMs: number,
): Promise<boolean> {
  const claim = [lease.jobId, lease.nodeId, lease.tokenSha256];
  const { rowCount } = await reading(() =>
    pool.query({ name: 'gateway_heartbeat', text: EXTEND, values: [...claim, leaseMs] }),
  );
  if (rowCount === 1) return true;
  // Nearly always the lease is simply over; the lock is taken only for the one that lacks its guard.
  const unguarded = await reading(() =>
    pool.query({ name: 'gateway_unguarded', text: `SELECT 1 ${UNGUARDED}`, values: claim }),
  );
  return unguarded.rowCount === 1 && restoreGuard(writers, claim, leaseMs);
}

/** Under the decision lock, so that no lease is opened behind a decision's back; looked at again there. */
async function restoreGuard(writers: pg.Pool, claim: readonly string[], leaseMs: number): Promise<boolean> {
  const client = await writers.connect().catch((error: unknown) => {
    throw asUnavailable(error);
  });
  let broken = false;
  try {
    await client.query('BEGIN');
    await client.query(`SELECT pg_advisory_xact_lock(${DECISION_LOCK})`);
    const { rowCount } = await client.query(
      `INSERT INTO telemetry.job_leases (job_id, node_id, token_sha256, expires_at)
       SELECT j.job_id, j.leased_to, j.lease_token_sha256, clock_timestamp() + $4 * interval '1 millisecond' ${UNGUARDED}`,
      [...claim, leaseMs],
    );
    await client.query('COMMIT');
    return rowCount === 1;
  } catch (error) {
    broken = true;
    throw asUnavailable(error);
  } finally {
    client.release(broken); // a session that failed in between is closed, and its transaction with it
  }
}
