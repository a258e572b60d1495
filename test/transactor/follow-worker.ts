import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { postgresEventLog } from '../../src/log/postgres/postgres-event-log.ts';

/** A process of its own that follows the log from FOLLOW_AFTER and prints each position that it has seen, until it is killed. */
const pool = createPool({ url: process.env['DATABASE_URL'] ?? '', program: 'follow', limits: READER_LIMITS, max: 2 });
const after = Number(process.env['FOLLOW_AFTER']);

for await (const events of postgresEventLog(pool).follow({ after, signal: new AbortController().signal })) {
  process.stdout.write(`${events.map((event) => event.position).join('\n')}\n`);
}
