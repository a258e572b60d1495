import type pg from 'pg';
import { postgresEventLog } from '../log/postgres/postgres-event-log.ts';
import { readDatabase } from './database.ts';
import type { FleetView } from './fleet-view.ts';
import { withLiveView } from './live-view.ts';
import { MOMENT_FORMS, parseMoment } from './moment.ts';
import { pastView } from './past-view.ts';

/** What was looked at, or what is wrong with the moment that was asked for. */
export type Viewed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

/**
 * Shows the fleet to `look`: as it is, or as it was at a moment that the operator wrote. A moment after the end of the log is refused,
 * because what will be is not known; times ago are measured by the database's clock.
 */
export async function viewFleet<T>(
  pool: pg.Pool,
  moment: string | undefined,
  look: (view: FleetView) => Promise<T>,
): Promise<Viewed<T>> {
  if (moment === undefined) return { ok: true, value: await withLiveView(readDatabase(pool), look) };
  const { rows } = await pool.query<{ now: number }>('SELECT clock_timestamp() AS now');
  const nowMs = rows[0]?.now ?? Date.now();
  const until = parseMoment(moment, nowMs);
  if (until === undefined) return { ok: false, problem: `--at ${moment} is not ${MOMENT_FORMS}` };
  if ('at' in until && until.at > nowMs) return { ok: false, problem: `--at ${moment} has not come yet` };
  const log = postgresEventLog(pool);
  if ('position' in until) {
    const { position } = await log.head();
    if (until.position > position)
      return { ok: false, problem: `--at ${moment} is past the end of the log, ${position}` };
  }
  return { ok: true, value: await look(await pastView(log, until)) };
}
