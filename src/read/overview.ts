import type pg from 'pg';
import type { EventRow } from '../domain/event/state.ts';
import { readDatabase } from './database.ts';
import { readEventRows } from './events.ts';
import { type FleetList, listFleet } from './fleet-list.ts';
import { withLiveView } from './live-view.ts';

/** The fleet at a glance: its nodes, how many jobs each has completed, and the last events, oldest first. */
export interface FleetOverview extends FleetList {
  /** By node id; a node that has completed none is missing. */
  readonly jobsDone: ReadonlyMap<string, number>;
  readonly events: readonly EventRow[];
}

/** Reads the overview with the last `events` events. */
export async function readOverview(pool: pg.Pool, events: number): Promise<FleetOverview> {
  const db = readDatabase(pool);
  const [list, done, last] = await Promise.all([
    withLiveView(db, (view) => listFleet(view, {})),
    db
      .selectFrom('fleet.jobs')
      .select(({ fn }) => ['leased_to', fn.countAll<number>().as('count')])
      .where('status', '=', 'completed')
      .groupBy('leased_to')
      .execute(),
    readEventRows(db, {}, { limit: events }),
  ]);
  const jobsDone = new Map(done.flatMap(({ leased_to, count }) => (leased_to === null ? [] : [[leased_to, count]])));
  return { ...list, jobsDone, events: last };
}
