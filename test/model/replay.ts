import type pg from 'pg';
import type { LogEngine } from '../../src/log/event-log.ts';
import { postgresEventLog, postgresLogEngine } from '../../src/log/postgres/postgres-event-log.ts';
import type { Queryable } from '../../src/log/postgres/reader.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase } from '../support/database.ts';
import type { Traced } from './world.ts';

const ACTOR = { kind: 'operator', id: 'model' } as const;
/** More events than a script makes. */
const MOST_EVENTS = 100_000;

/**
 * Does on a PostgreSQL of its own what was done in memory, by the real transactor in batches of whatever lies between two writes of
 * telemetry, and answers the events that came of it.
 */
export async function replay(trace: readonly Traced[]): Promise<readonly { type: string; data: object }[]> {
  const database = await createTestDatabase();
  const clock = { now: 0 };
  const transactor = new Transactor({
    url: database.url,
    program: 'model',
    programVersion: '0.0.0',
    log: recordingAt(clock),
  });
  try {
    for (const group of grouped(trace)) {
      const [first] = group;
      if (first?.is !== 'command') await writeTelemetry(database.pool, group);
      else {
        clock.now = first.now;
        await Promise.all(group.flatMap((one) => (one.is === 'command' ? [execute(transactor, one)] : [])));
      }
    }
    const events = await postgresEventLog(database.pool).read({ after: 0, limit: MOST_EVENTS });
    return events.map(({ event: { type, data } }) => ({ type, data }));
  } finally {
    await transactor.close();
    await database.drop();
  }
}

/** What may be done together: commands of one moment, and rows of telemetry. */
function grouped(trace: readonly Traced[]): Traced[][] {
  const groups: Traced[][] = [];
  const kind = (one: Traced | undefined) => (one?.is === 'command' ? `at ${one.now}` : one && 'telemetry');
  for (const one of trace) {
    const last = groups.at(-1);
    if (last !== undefined && kind(last[0]) === kind(one)) last.push(one);
    else groups.push([one]);
  }
  return groups;
}

function execute(transactor: Transactor, { definition, command, now }: Traced & { is: 'command' }) {
  const then: CommandDefinition<unknown, unknown> = {
    ...definition,
    decide: (asked, state, time) => definition.decide(asked, state, { ...time, now }),
  };
  return transactor.execute(then, command, { actor: ACTOR });
}

/** The log as it would be at another time: later than this machine's, so that each event is as old as its script says. */
function recordingAt(clock: { readonly now: number }): LogEngine<Queryable> {
  return {
    writer(session) {
      const writer = postgresLogEngine.writer(session);
      const head = async () => {
        const at = await writer.head();
        return { ...at, at: Math.max(at.at, clock.now) };
      };
      return { head, append: (at, events) => writer.append(at, events) };
    },
  };
}

async function writeTelemetry(pool: pg.Pool, rows: readonly Traced[]): Promise<void> {
  for (const one of rows) {
    if (one.is === 'scheduler') {
      const { id, term, holder, heard_ms } = one.row;
      await pool.query(
        `INSERT INTO telemetry.scheduler (id, term, holder, heard_ms) VALUES ($1, $2, $3, $4)
         ON CONFLICT (id) DO UPDATE SET term = excluded.term, heard_ms = excluded.heard_ms`,
        [id, term, holder, heard_ms],
      );
    } else if (one.is === 'liveness') {
      const { node_id, last_seen_at, heard_ms } = one.row;
      await pool.query(
        `INSERT INTO telemetry.node_liveness (node_id, last_seen_at, heard_ms) VALUES ($1, $2, $3)
         ON CONFLICT (node_id) DO UPDATE SET last_seen_at = excluded.last_seen_at, heard_ms = excluded.heard_ms`,
        [node_id, new Date(last_seen_at).toISOString(), heard_ms],
      );
    }
  }
}
