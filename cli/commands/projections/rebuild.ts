import { createPool, READER_LIMITS } from '../../../src/database/connect.ts';
import { rebuild } from '../../../src/projector/rebuild.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { duration } from '../../output/format.ts';
import { progressLine } from '../../output/progress.ts';
import { pairLines } from '../../output/table.ts';

/** `projections rebuild`: folds the whole log into fresh tables. */
export default class ProjectionsRebuild extends OperatorCommand {
  static override summary = 'Fold the whole log into fresh tables and put them in the place of the live ones.';
  static override description =
    'Commands wait while it runs, readers do not notice. Interrupted at any point it leaves the live tables as they are. ' +
    'The database user has to own the tables.';
  static override examples = [
    '<%= config.bin %> projections rebuild',
    '<%= config.bin %> projections rebuild --dry-run',
  ];
  static override flags = { 'dry-run': dryRunFlag };
  protected override readonly audience = 'owner';

  async run() {
    const { flags } = await this.parse(ProjectionsRebuild);
    if (flags['dry-run']) {
      const { position } = await this.view(flags, (view) => Promise.resolve(view.moment));
      this.log('%s', `would fold ${position} events into fresh tables`);
      return { dry_run: true, position, rows: {} };
    }
    // Its statements take as long as the log is long.
    const limits = { ...READER_LIMITS, statementMs: 0, idleInTransactionMs: 0 };
    const { databaseUrl } = await this.environment(flags);
    const pool = createPool({ url: databaseUrl, program: this.programName(), limits, max: 2 });
    this.onEnd(() => pool.end());
    const progress = progressLine(this.jsonEnabled());
    const report = await rebuild(pool, ({ position }) => progress.update(`folded up to position ${position}`));
    progress.end();
    const { position, milliseconds, rows } = report;
    this.logLines([
      `rebuilt from ${position} events in ${milliseconds < 1_000 ? `${milliseconds} ms` : duration(milliseconds)}`,
      ...pairLines(Object.entries(rows).map(([table, count]) => [`  ${table}`, `${count} rows`] as const)),
    ]);
    return { dry_run: false, position, milliseconds, rows };
  }
}
