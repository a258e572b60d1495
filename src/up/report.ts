import type pg from 'pg';
import { readDatabase } from '../read/database.ts';

/** What a start of the fleet has come to. */
export interface UpReport {
  readonly nodes_enrolled: number;
  /** Of the jobs that this start queued. */
  readonly jobs_completed: number;
  /** In the whole log. */
  readonly events: number;
  /** From the start of the command until all of this was so. */
  readonly seconds: number;
}

/** Counts what is there; `startedAt` is of the monotonic clock (performance.now). */
export async function reportOf(pool: pg.Pool, jobsCompleted: number, startedAt: number): Promise<UpReport> {
  const db = readDatabase(pool);
  const [nodes, events] = await Promise.all([
    db
      .selectFrom('fleet.fleet_nodes')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('provision_state', '=', 'enrolled')
      .executeTakeFirst(),
    db
      .selectFrom('fleet.fleet_events')
      .select(({ fn }) => fn.max('position').as('head'))
      .executeTakeFirst(),
  ]);
  return {
    nodes_enrolled: nodes?.count ?? 0,
    jobs_completed: jobsCompleted,
    events: events?.head ?? 0,
    seconds: Math.round((performance.now() - startedAt) / 100) / 10,
  };
}
