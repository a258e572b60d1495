import { DECISION_LOCK } from '../database/locks.ts';
import type { LogHead, LogWriter } from '../log/event-log.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import { DEFINITION_DIGEST } from '../projector/digest.ts';
import { UnavailableError } from './command.ts';

/** What is true under the lock: where the log ends, the database's clock, whose session this is. */
export interface UnderLock {
  readonly head: LogHead;
  readonly nowMs: number;
  readonly databaseUser: string;
  readonly clientAddress: string | null;
}

const STATE_QUERY = `
  SELECT clock_timestamp() AS now, session_user::text AS database_user, host(inet_client_addr()) AS client_address,
         (SELECT digest FROM fleet.definition) AS digest`;

interface StateRow {
  readonly now: number;
  readonly database_user: string;
  readonly client_address: string | null;
  readonly digest: string | null;
}

/**
 * Begins a batch. The lock is a statement of its own, and everything is read after it: a statement that both waits and reads sees rows
 * from before the wait. The clock is read after it too. All of it is one round trip on a pipelined connection. Throws
 * {@link UnavailableError} when another version of this program built the tables.
 */
export async function beginUnderLock(db: Queryable, log: LogWriter): Promise<UnderLock> {
  const [, { rows }, head] = await all([
    db.query(`BEGIN; SELECT pg_advisory_xact_lock(${DECISION_LOCK})`),
    db.query<StateRow>({ name: 'under_lock', text: STATE_QUERY }),
    log.head(),
  ]);
  const [row] = rows;
  if (row === undefined) throw new Error('the database did not tell its clock');
  requireDefinition(row.digest);
  return {
    head,
    nowMs: row.now,
    databaseUser: row.database_user,
    clientAddress: row.client_address,
  };
}

/** Throws {@link UnavailableError} unless the tables were built with this program's definitions. */
export function requireDefinition(digest: string | null): void {
  if (digest === DEFINITION_DIGEST) return;
  throw new UnavailableError(
    'definition_mismatch',
    'the tables were built by another version of this program: run `db migrate`',
  );
}

/** Commits. A failed transaction answers COMMIT with ROLLBACK and no error, so the answer is looked at. */
export async function commit(db: Queryable): Promise<void> {
  const { command } = await db.query('COMMIT');
  if (command !== 'COMMIT') throw new Error(`COMMIT was answered with ${command}`);
}

/**
 * Awaits pipelined queries: every one is awaited, so that none is left to reject on its own, and the first error is thrown, because
 * those after it only say that the transaction is aborted.
 */
export async function all<const T extends readonly Promise<unknown>[]>(
  queries: T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const settled = await Promise.allSettled(queries);
  for (const result of settled) if (result.status === 'rejected') throw result.reason;
  return settled.map((result) => (result.status === 'fulfilled' ? result.value : undefined)) as {
    -readonly [K in keyof T]: Awaited<T[K]>;
  };
}
