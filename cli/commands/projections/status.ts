import { readProjectionStatus } from '../../../src/read/projection-status.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { isoTime, moment } from '../../output/format.ts';
import { pairLines } from '../../output/table.ts';

/** `projections status`: up to where the tables are folded, by which definition. */
export default class ProjectionsStatus extends OperatorCommand {
  static override summary = 'Show up to where the tables are folded, by which definition, and how many rows they hold.';
  static override examples = ['<%= config.bin %> projections status'];

  async run() {
    const { flags } = await this.parse(ProjectionsStatus);
    const status = await readProjectionStatus(await this.pool(flags));
    this.logLines(
      pairLines([
        ['position', `${status.position} of ${status.logPosition}`],
        ['built', moment(status.builtAt)],
        [
          'definition',
          status.definitionMatches ? "this program's" : "another version's: run `pushleft-controller db migrate`",
        ],
        ...Object.entries(status.rows).map(([table, count]) => [table, `${count} rows`] as const),
      ]),
    );
    return {
      position: status.position,
      log_position: status.logPosition,
      built_at: isoTime(status.builtAt),
      definition_digest: status.definitionDigest,
      definition_matches: status.definitionMatches,
      rows: status.rows,
    };
  }
}
