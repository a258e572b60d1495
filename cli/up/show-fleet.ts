import { setTimeout as delay } from 'node:timers/promises';
import { eventRow } from '../../projections/fleet-events.ts';
import { isConnectionError } from '../../src/database/connect.ts';
import { postgresEventLog } from '../../src/log/postgres/postgres-event-log.ts';
import { type FleetOverview, readOverview } from '../../src/read/overview.ts';
import type { RunningFleet } from '../../src/up/fleet.ts';
import { eventLine } from '../output/event.ts';
import { ago } from '../output/format.ts';
import { tableLines } from '../output/table.ts';

const REDRAW_MS = 1_000;
const EVENTS_SHOWN = 8;

/** Shows the fleet until the signal aborts: a table that is redrawn on a terminal, a line an event elsewhere. */
export async function showFleet(fleet: RunningFleet, signal: AbortSignal): Promise<void> {
  if (process.stdout.isTTY) await drawTable(fleet, signal);
  else await printEvents(fleet, signal);
}

async function printEvents({ pool }: RunningFleet, signal: AbortSignal): Promise<void> {
  const log = postgresEventLog(pool);
  const { position } = await log.head();
  for await (const page of log.follow({ after: position, signal })) {
    for (const { event } of page) process.stdout.write(`${eventLine(eventRow(event))}\n`);
  }
}

/** Each drawing begins by going back up over the one before, so that what was printed above stays. */
async function drawTable({ pool }: RunningFleet, signal: AbortSignal): Promise<void> {
  let drawn = 0;
  while (!signal.aborted) {
    const lines = await readOverview(pool, EVENTS_SHOWN).then(overviewLines, (error: unknown) => {
      if (!(error instanceof Error) || !isConnectionError(error)) throw error;
      return ['the database does not answer'];
    });
    // Something else has been printed since: the cursor is no longer where the drawing ended.
    if (signal.aborted) return;
    const { columns, rows } = process.stdout;
    const fitting = lines.slice(0, rows - 1).map((line) => line.slice(0, columns - 1));
    const up = drawn === 0 ? '' : `\u001B[${drawn}A`;
    process.stdout.write(`${up}\u001B[J${fitting.join('\n')}\n`);
    drawn = fitting.length;
    await delay(REDRAW_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** The overview as lines: one a node, then the last events. */
function overviewLines({ nodes, jobsDone, events, moment }: FleetOverview): string[] {
  const table = tableLines(nodes, [
    { heading: 'NAME', value: ({ node }) => node.name },
    { heading: 'STATUS', value: ({ node }) => (node.status === 'active' ? 'active' : node.provision_state) },
    { heading: 'SCHEDULABLE', value: ({ node }) => (node.schedulable ? 'yes' : 'no') },
    { heading: 'LAST SEEN', value: ({ lastSeenAt }) => ago(lastSeenAt, moment.nowMs), alignRight: true },
    { heading: 'JOBS DONE', value: ({ node }) => String(jobsDone.get(node.node_id) ?? 0), alignRight: true },
  ]);
  return [...table, '', ...events.map(eventLine), '', 'Ctrl-C stops the fleet and keeps its state.'];
}
