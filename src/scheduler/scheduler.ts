import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createPool, READER_LIMITS, WRITER_LIMITS } from '../database/connect.ts';
import { programId, removeBeacon, writeBeacon } from '../database/programs.ts';
import { forgetOutcomes } from '../transactor/memory.ts';
import { Transactor } from '../transactor/transactor.ts';
import { type CheckpointPass, checkpointPass } from './checkpoints.ts';
import type { SchedulerConfig } from './config.ts';
import { Leadership } from './leader.ts';
import { expireLeases, removeOrphanGuards, restoreLostGuards } from './leases.ts';

/** A leader that does not ask for this many passes is taken for stopped. */
const MISSED_PASSES = 4;
/** How long a decided command is remembered for a retry. */
const MEMORY_MS = 24 * 3_600_000;

/** A running scheduler. */
export interface Scheduler {
  /** Ends after the pass that is under way. */
  close(): Promise<void>;
}

/**
 * Runs passes until closed: only the leader among replicas acts, the others stand by. A pass that fails is logged and the next one comes
 * as planned; the database being away ends nothing.
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
  const leadership = new Leadership(connection, Math.max(5_000, config.intervalMs * MISSED_PASSES));
  const actor = { kind: 'scheduler', id } as const;
  const checkpoints: CheckpointPass | undefined =
    config.checkpoints && checkpointPass(config.checkpoints, { pool, transactor, actor, log });
  const stop = new AbortController();

  const pass = async () => {
    const leads = await leadership.check();
    if (leads) {
      await restoreLostGuards(writers, config.leaseMs);
      await removeOrphanGuards(pool);
      const expired = await expireLeases(pool, transactor, id);
      if (expired > 0) log.info({ expired }, 'leases ran out');
      await forgetOutcomes(pool, MEMORY_MS);
      checkpoints?.begin();
    }
    await writeBeacon(pool, { id, kind: 'scheduler', details: { leader: leads, interval_ms: config.intervalMs } });
    return leads;
  };
  const run = async () => {
    let led = false;
    while (!stop.signal.aborted) {
      try {
        const leads = await pass();
        if (leads !== led) log.info(leads ? 'leading' : 'standing by');
        led = leads;
      } catch (error) {
        led = false;
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
