import { Flags } from '@oclif/core';
import { EVENT_TYPES } from '../../../src/domain/event/catalogue.ts';
import type { EventRow } from '../../../src/domain/event/state.ts';
import { postgresEventLog } from '../../../src/log/postgres/postgres-event-log.ts';
import { readDatabase } from '../../../src/read/database.ts';
import { type EventFilter, followEventRows, readEventRows } from '../../../src/read/events.ts';
import { MOMENT_FORMS, parseMoment } from '../../../src/read/moment.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { limitFlag, nodeFlag } from '../../arguments.ts';
import type { FleetChoice } from '../../connection.ts';
import { refusalFailure, usageFailure } from '../../failure.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { eventJson, eventLine } from '../../output/event.ts';
import { untilStopped } from '../../until-stopped.ts';

/** `fleet events`: what happened, and what happens. */
export default class FleetEvents extends OperatorCommand {
  static override summary = 'Show what happened: the events of the log, and with --follow those to come.';
  static override description =
    'Shows the last events, or with --after the first ones behind a position. With --follow --json each event is a line of its own.';
  static override examples = [
    '<%= config.bin %> fleet events --follow',
    '<%= config.bin %> fleet events --node app-fsn1-7k2m --since 1h',
    '<%= config.bin %> fleet events --type node_enrolled,node_admitted --after 120 --json',
  ];
  static override flags = {
    node: nodeFlag,
    type: Flags.option({
      options: EVENT_TYPES,
      multiple: true,
      delimiter: ',',
      multipleNonGreedy: true,
      summary: 'Only events of these types.',
      helpValue: 'TYPE',
    })(),
    since: Flags.string({ summary: `Only events from then on: an ISO time, or 10m, 2h, 1d.`, helpValue: 'TIME' }),
    after: Flags.integer({ summary: 'Begin behind this log position.', min: 0 }),
    limit: limitFlag(50, 10_000),
    follow: Flags.boolean({ char: 'f', summary: 'Go on with events as they are appended, until Ctrl-C.' }),
  };

  async run() {
    const { flags } = await this.parse(FleetEvents);
    const pool = await this.pool(flags);
    const filter = await this.view(flags, async (view): Promise<EventFilter> => {
      const node = flags.node === undefined ? undefined : await resolveNode(view, flags.node);
      if (node?.ok === false) throw refusalFailure(node.refusal);
      return { nodeId: node?.value.node_id, types: flags.type, sinceMs: sinceMs(flags.since, view.moment.nowMs) };
    });
    if (flags.follow) return this.follow(filter, flags);
    const found = await readEventRows(readDatabase(pool), filter, { after: flags.after, limit: flags.limit + 1 });
    const more = found.length > flags.limit;
    const first = flags.after !== undefined;
    // One more than is shown was asked for, at the end that is far from where the reader begins.
    const events = first ? found.slice(0, flags.limit) : found.slice(-flags.limit);
    const cut = `only the ${first ? 'first' : 'last'} ${events.length}: --limit shows more`;
    this.logLines(events.length === 0 ? ['no such events'] : [...events.map(eventLine), ...(more ? [cut] : [])]);
    return { events: events.map(eventJson), more };
  }

  private async follow(
    filter: EventFilter,
    flags: FleetChoice & { after?: number | undefined; limit: number },
  ): Promise<void> {
    const pool = await this.pool(flags);
    const log = postgresEventLog(pool);
    const head = await log.head();
    const shown =
      flags.after === undefined
        ? (await readEventRows(readDatabase(pool), filter, flags)).filter(({ position }) => position <= head.position)
        : [];
    for (const event of shown) this.printOne(event);
    const after = flags.after ?? head.position;
    await untilStopped(async (signal) => {
      for await (const event of followEventRows(log, filter, { after, signal })) this.printOne(event);
    });
  }

  private printOne(event: EventRow): void {
    process.stdout.write(`${this.jsonEnabled() ? JSON.stringify(eventJson(event)) : eventLine(event)}\n`);
  }
}

function sinceMs(text: string | undefined, nowMs: number): number | undefined {
  if (text === undefined) return undefined;
  const moment = parseMoment(text, nowMs);
  if (moment === undefined || 'position' in moment) throw usageFailure(`--since ${text} is not ${MOMENT_FORMS}`);
  return moment.at;
}
