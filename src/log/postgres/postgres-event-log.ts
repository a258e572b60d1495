import type pg from 'pg';
import type { EventLog } from '../event-log.ts';
import { follow } from './follow.ts';
import { readEvents, readHead, readStreamEvents } from './reader.ts';

/** The log in PostgreSQL, read through a pool. Appending belongs to the transactor's transaction: see `append.ts`. */
export function postgresEventLog(pool: pg.Pool): EventLog {
  return {
    head: () => readHead(pool),
    read: (page) => readEvents(pool, page),
    readStream: (stream, page) => readStreamEvents(pool, stream, page),
    follow: (from) => follow(pool, from),
  };
}
