import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createPool, isConnectionError, READER_LIMITS, WRITER_LIMITS } from '../database/connect.ts';
import { programId, removeBeacon, writeBeacon } from '../database/programs.ts';
import { forgetOutcomes } from '../transactor/memory.ts';
import { Transactor } from '../transactor/transactor.ts';
import { type CheckpointPass, checkpointPass } from './checkpoints.ts';
import type { SchedulerConfig } from './config.ts';
import { Leadership } from './leader.ts';
import { expireLeases, removeOrphanGuards, restoreLostGuards } from './leases.ts';
import type { Led, PassReport } from './pass.ts';

/** A leader that does not ask for this many passes is taken for stopped. */
const MISSED_PASSES = 4;
/** How long a decided command is remembered for a retry. */
const MEMORY_MS = 24 * 3_600_000;

/** A running scheduler. */
export interface Scheduler {
  /** Ends after the pass that is under way. */
  close(): Promise<void>;
}

/** One of the things that a leader does in each pass. What it could not do is tried again in the next. */
interface Duty {
  readonly name: string;
  readonly run: (led: Led) => Promise<PassReport | undefined>;
}

/**
 * Runs passes until closed: only the leader among replicas acts, the others stand by. A duty that fails is logged, stops no other and
 * comes again with the next pass; the database being away ends nothing.
 */
export function startScheduler(config: SchedulerConfig, log: Logger): Scheduler {
  const id = programId('scheduler');
  const connection = { url: config.databaseUrl, program: 'scheduler', limits: READER_LIMITS };
  const pool = createPool({ ...connection, max: 4 });
  const writers = createPool({ ...connection, limits: WRITER_LIMITS, max: 1 });
  const transactor = new Transactor({
    url: config.databaseUrl,
    program: 'scheduler',
    programVersion: config.programVersion,
  });
  const idleMs = Math.max(5_000, config.intervalMs * MISSED_PASSES);
  const leadership = new Leadership({ connection, holder: id, idleMs });
  const actor = { kind: 'scheduler', id } as const;
  const checkpoints: CheckpointPass | undefined =
    config.checkpoints && checkpointPass(config.checkpoints, { pool, transactor, actor, log });
  const stop = new AbortController();

  const duties: readonly Duty[] = [
    {
      name: 'guards',
      async run() {
        await restoreLostGuards(writers, config.leaseMs);
        await removeOrphanGuards(pool);
        return undefined;
      },
    },
    { name: 'leases', run: (led) => expireLeases(pool, led) },
    {
      name: 'memory',
      async run() {
        await forgetOutcomes(pool, MEMORY_MS);
        checkpoints?.begin();
        return undefined;
      },
    },
  ];
  const perform = async (led: Led) => {
    for (const duty of duties) {
      try {
        const report = await duty.run(led);
        if (report === undefined) continue;
        tell(log, duty.name, report);
        if (isSuperseded(report)) return leadership.close();
      } catch (error) {
        if (isConnectionError(error)) throw error;
        log.error({ err: error, duty: duty.name }, 'a duty failed');
      }
    }
  };
  const pass = async () => {
    const term = await leadership.check();
    if (term !== undefined) await perform({ transactor, actor, term });
    const details = { leader: term !== undefined, term: term ?? null, interval_ms: config.intervalMs };
    await writeBeacon(pool, { id, kind: 'scheduler', details });
    return term;
  };
  const run = async () => {
    let led: number | undefined;
    while (!stop.signal.aborted) {
      try {
        const term = await pass();
        if (term !== led) log.info({ term }, term === undefined ? 'standing by' : 'leading');
        led = term;
      } catch (error) {
        led = undefined;
        log.error({ err: error }, 'a pass failed');
      }
      await delay(config.intervalMs, undefined, { signal: stop.signal }).catch(() => undefined);
    }
  };
  const running = run();
  return {
    async close() {
      stop.abort();
      await running;
      await checkpoints?.ended();
      await removeBeacon(pool, id).catch(() => undefined);
      await Promise.all([transactor.close(), leadership.close(), pool.end(), writers.end()]);
    },
  };
}

/** Another replica leads: this one has to ask for a term of its own before it does anything else. */
function isSuperseded({ refused }: PassReport): boolean {
  return refused.some(({ refusal }) => refusal.code === 'term_superseded');
}

function tell(log: Logger, duty: string, { done, refused, failed }: PassReport): void {
  if (done > 0) log.info({ duty, done, refused: refused.length }, 'decided');
  for (const { command, error } of failed) log.error({ err: error, duty, command }, 'a command failed');
}
