import { isConnectionError, isTransient, sqlState } from '../database/connect.ts';
import { UnavailableError } from '../transactor/command.ts';

/** Every statement of a gateway is small; one that takes longer than this is given up, and its caller told to try again. */
export const STATEMENT_MS = 5_000;

const CANCELLED = '57014';
/** A rebuild has put fresh tables in the place of those that a statement was parsed for; parsed again, it finds them. */
const TABLES_REPLACED = /^(?:42P01|3F000|XX000|0A000)$/;

/**
 * Runs a query that changes nothing, once more when a rebuild swapped the tables under it. Throws {@link UnavailableError} when the
 * database is away or too slow, which becomes a 503; anything else is a defect.
 */
export async function reading<T>(query: () => Promise<T>): Promise<T> {
  try {
    return await query().catch((error: unknown) => {
      if (TABLES_REPLACED.test(sqlState(error) ?? '')) return query();
      throw error;
    });
  } catch (error) {
    throw asUnavailable(error);
  }
}

/** What a database error means for whoever asked. */
export function asUnavailable(error: unknown): unknown {
  const passes = isConnectionError(error) || isTransient(error) || sqlState(error) === CANCELLED;
  return passes ? new UnavailableError('database', 'the database does not answer', { cause: error }) : error;
}
