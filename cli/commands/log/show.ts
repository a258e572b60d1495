import { Args } from '@oclif/core';
import { postgresEventLog } from '../../../src/log/postgres/postgres-event-log.ts';
import { EXIT } from '../../exit-code.ts';
import { Failure } from '../../failure.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { isoTime, moment } from '../../output/format.ts';
import { pairLines } from '../../output/table.ts';

/** `log show`: one event whole, with who caused it. */
export default class LogShow extends OperatorCommand {
  static override summary = 'Show one event whole: its data, who caused it, its place in the chain.';
  static override examples = ['<%= config.bin %> log show 412', '<%= config.bin %> log show 412 --json'];
  static override args = {
    position: Args.integer({ description: 'Its log position.', min: 1, required: true, ignoreStdin: true }),
  };

  async run() {
    const { args, flags } = await this.parse(LogShow);
    const log = postgresEventLog(await this.pool(flags));
    const [stored] = await log.read({ after: args.position - 1, limit: 1 });
    if (stored === undefined || stored.position !== args.position) {
      const { position } = await log.head();
      throw new Failure(
        EXIT.refused,
        'position_unknown',
        `the log has no position ${args.position}, it ends at ${position}`,
      );
    }
    const { event, revision, hash } = stored;
    const { actor, command_id, correlation_id, program_version, epoch } = event.metadata;
    this.logLines([
      ...pairLines([
        ['position', String(event.position)],
        ['type', event.type],
        ['at', moment(event.at)],
        ['stream', `${event.stream}, revision ${revision}`],
        ['actor', `${actor.kind} ${actor.id}`],
        ['database user', `${actor.database_user} from ${actor.client_address ?? 'a local socket'}`],
        ['command', command_id],
        ['correlation', correlation_id],
        ['program', `${program_version}, epoch ${epoch}`],
        ['hash', hash],
      ]),
      JSON.stringify(event.data, null, 2),
    ]);
    const { position, type, stream, at, data, metadata } = event;
    return { position, at: isoTime(at), type, stream, revision, data, metadata, hash };
  }
}
