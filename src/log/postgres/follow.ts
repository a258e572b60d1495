import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { isConnectionError } from '../../database/connect.ts';
import { LogFormatError, type StoredEvent } from '../event-log.ts';
import { LOG_CHANNEL } from './append.ts';
import { readEvents } from './reader.ts';

const PAGE = 500;
/** A notification may be lost (a writer that died after its commit, a broken connection): look anyway, this often. */
const POLL_MS = 1_000;
const RECONNECT_MS = 500;

/**
 * Yields events after a position, in order, each exactly once, for as long as the signal allows. LISTEN wakes it, polling makes up for
 * lost notifications, and a lost connection is replaced: positions are gapless, so reading on from the last one misses nothing.
 * Throws what is no connection trouble, and {@link LogFormatError} for a gap, which only tampering can make.
 */
export async function* follow(
  pool: pg.Pool,
  { after, signal }: { after: number; signal: AbortSignal },
): AsyncGenerator<readonly StoredEvent[]> {
  let last = after;
  while (!signal.aborted) {
    try {
      await using listener = await listen(pool);
      while (!signal.aborted) {
        const seen = listener.wakes;
        const events = await readEvents(listener.client, { after: last, limit: PAGE });
        for (const [i, event] of events.entries()) {
          if (event.position !== last + 1 + i)
            throw new LogFormatError(`position ${last + 1 + i} is missing from the log`);
        }
        if (events.length > 0) {
          last += events.length;
          yield events;
        }
        if (events.length < PAGE) await listener.wake(seen, signal);
      }
    } catch (error) {
      if (!isConnectionError(error)) throw error;
      await delay(RECONNECT_MS, undefined, { signal }).catch(() => undefined);
    }
  }
}

/** A connection that listens; `wake` resolves at the next notification since `seen`, after {@link POLL_MS}, or at the abort. */
async function listen(pool: pg.Pool) {
  const client = await pool.connect();
  const listener = {
    client,
    wakes: 0,
    resolve: () => {},
    async wake(seen: number, signal: AbortSignal): Promise<void> {
      if (listener.wakes !== seen || signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, POLL_MS);
      listener.resolve = resolve;
      signal.addEventListener('abort', listener.resolve);
      await promise;
      signal.removeEventListener('abort', listener.resolve);
      clearTimeout(timer);
    },
    async [Symbol.asyncDispose]() {
      client.removeAllListeners('notification');
      client.removeListener('error', onError);
      client.release(true);
    },
  };
  const onError = () => listener.resolve();
  client.on('notification', () => {
    listener.wakes += 1;
    listener.resolve();
  });
  client.on('error', onError);
  try {
    await client.query(`LISTEN ${LOG_CHANNEL}`);
  } catch (error) {
    await listener[Symbol.asyncDispose]();
    throw error;
  }
  return listener;
}
