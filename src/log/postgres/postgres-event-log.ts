import type pg from 'pg';
import type { EventLog, LogEngine } from '../event-log.ts';
import { appendEvents } from './append.ts';
import { follow } from './follow.ts';
import { type Queryable, readEvents, readHead, readStreamEvents } from './reader.ts';

/** The log in PostgreSQL, written in the writer's own transaction. */
export const postgresLogEngine: LogEngine<Queryable> = {
  writer: (session) => ({
    head: () => readHead(session),
    append: (head, events) => appendEvents(session, head, events),
  }),
};

/** The log in PostgreSQL, read through a pool. */
export function postgresEventLog(pool: pg.Pool): EventLog {
  return {
    head: () => readHead(pool),
    read: (page) => readEvents(pool, page),
    readStream: (stream, page) => readStreamEvents(pool, stream, page),
    follow: (from) => follow(pool, from),
  };
}
