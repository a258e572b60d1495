import { verifyProjections } from '../../../src/projector/verify.ts';
import { EXIT } from '../../exit-code.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { progressLine } from '../../output/progress.ts';

/** `projections verify`: proves that the tables are what the log makes of them. */
export default class ProjectionsVerify extends OperatorCommand {
  static override summary = 'Fold the log again and compare every row with the live tables, while the fleet goes on.';
  static override description = 'Exits 1 when a row differs, and names it.';
  static override examples = ['<%= config.bin %> projections verify', '<%= config.bin %> projections verify --json'];

  async run() {
    const { flags } = await this.parse(ProjectionsVerify);
    const line = progressLine(this.jsonEnabled());
    const { position, rows, differences } = await verifyProjections(await this.pool(flags), {
      progress: (folded) => line.update(`folded up to position ${folded.position}`),
      compared: (count) => line.update(`compared ${count} rows`),
    });
    line.end();
    if (differences.length > 0) process.exitCode = EXIT.refused;
    this.logLines(
      differences.length === 0
        ? [`${rows} rows are what the log makes of them, up to position ${position}`]
        : [
            ...differences.map(({ table, key, kind, columns }) =>
              kind === 'differs' ? `${table} ${key} differs in ${columns.join(', ')}` : `${table} ${key} is ${kind}`,
            ),
            'run `pushleft-controller projections rebuild` once the cause is known',
          ],
    );
    return { position, rows, differences };
  }
}
