import type pg from 'pg';
import { GENESIS, type LogVerification, type ProofOptions, proveRows } from '../prove.ts';
import { rowPages } from './reader.ts';

/**
 * Proves the whole log from its first event (see {@link proveRows}), columns included. An end that was cut off shows only against what
 * was folded from it, or a checkpoint kept elsewhere.
 */
export async function verifyLog(pool: pg.Pool, options: ProofOptions = {}): Promise<LogVerification> {
  // Asked first: what is appended while the log is read only makes it longer.
  const folded = await pool.query<{ last: number | null }>('SELECT max(position) AS last FROM fleet.fleet_events');
  const verified = await proveRows(rowPages(pool, GENESIS.position), GENESIS, options);
  const { position, fault } = verified;
  const complete = fault === undefined || fault.reason === 'newer_program';
  const cut = complete && (folded.rows[0]?.last ?? 0) > position;
  return cut ? { ...verified, fault: { position: position + 1, reason: 'cut_short' } } : verified;
}
