import { sqlState } from '../../database/connect.ts';
import { LogConflictError, type LogHead, type SealedEvent } from '../event-log.ts';
import type { Queryable } from './reader.ts';

/** Woken followers listen here; the payload is empty, because what counts is in the log. */
export const LOG_CHANNEL = 'pushleft_log';

/**
 * Appends sealed events behind `head`, inside the caller's transaction, under the caller's lock. Followers are woken once a group, when
 * the transaction has committed. Throws {@link LogConflictError} when the log ends elsewhere; a database error when the user may not
 * append such events.
 */
export async function appendEvents(db: Queryable, head: LogHead, events: readonly SealedEvent[]): Promise<void> {
  if (events.length === 0) return;
  try {
    await db.query({
      name: 'log_append',
      text: `SELECT log.append($1, $2, $3), pg_notify('${LOG_CHANNEL}', '')`,
      values: [head.position, events.map((e) => e.body), events.map((e) => Buffer.from(e.hash, 'hex'))],
    });
  } catch (cause) {
    if (sqlState(cause) === 'PF001') throw new LogConflictError('the log has moved', { cause });
    throw cause;
  }
}
