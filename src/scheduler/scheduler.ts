import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createPool, READER_LIMITS, WRITER_LIMITS } from '../database/connect.ts';
import { programId, removeBeacon, writeBeacon } from '../database/programs.ts';
import { forgetOutcomes } from '../transactor/memory.ts';
import { Transactor } from '../transactor/transactor.ts';
import { type CheckpointPass, checkpointPass } from './checkpoints.ts';
import type { SchedulerConfig } from './config.ts';
import { type Duty, perform } from './duties.ts';
import { Leadership } from './leader.ts';
import { expireLeases, removeOrphanGuards, restoreLostGuards } from './leases.ts';
import { LossWatch } from './loss-watch.ts';
import { SilenceClock } from './silence-clock.ts';
import { sweep } from './sweep.ts';
import { runWorkloads } from './workloads/workloads.ts';

/** A leader that does not ask for this many passes is taken for stopped. */
const MISSED_PASSES = 4;
/** The clock of silence advances by no more than this at once: gateways are reached and write it every few seconds. */
const CLOCK_STEP_MS = 5_000;
/** How long a decided command is remembered for a retry. */
const MEMORY_MS = 24 * 3_600_000;

/** A running scheduler. */
export interface Scheduler {
  /** Ends after the pass that is under way. */
  close(): Promise<void>;
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
  const clock = new SilenceClock(pool, { mostMs: Math.max(CLOCK_STEP_MS, config.intervalMs * MISSED_PASSES) });
  const losses = new LossWatch(log);
  const stop = new AbortController();

  const duties: readonly Duty[] = [
    {
      name: 'guards',
      async run() {
        await restoreLostGuards(writers, config.leaseMs);
        await removeOrphanGuards(pool);
        return [];
      },
    },
    { name: 'leases', run: async (led) => [await expireLeases(pool, led)] },
    {
      name: 'sweep',
      async run(led) {
        const { pools, nodes } = await sweep(pool, led, config.silence);
        return [pools, nodes];
      },
    },
    { name: 'workloads', run: (led) => runWorkloads(pool, led) },
    {
      name: 'memory',
      async run() {
        await forgetOutcomes(pool, MEMORY_MS);
        checkpoints?.begin();
        return [];
      },
    },
  ];
  const lead = async (term: number) => {
    const { inTerm, standsMs, waitsFor } = await clock.pass(term);
    if (!inTerm || (await perform(duties, { transactor, actor, term }, log)) === 'superseded') {
      // Whoever leads now, this replica has to ask for a term of its own before it does anything else.
      await leadership.close();
    }
    const { unhealthyAfterMs, lostAfterMs } = config.silence;
    return {
      unhealthy_after_ms: unhealthyAfterMs,
      lost_after_ms: lostAfterMs,
      silence_stands_ms: Math.round(standsMs),
      silence_waits_for: waitsFor,
      ...(await losses.look(pool)),
    };
  };
  const pass = async () => {
    const term = await leadership.check();
    const led = term === undefined ? {} : await lead(term);
    const details = { leader: term !== undefined, term: term ?? null, interval_ms: config.intervalMs, ...led };
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
