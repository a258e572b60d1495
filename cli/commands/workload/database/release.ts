import { releaseDatabaseCommand } from '../../../../src/commands/database.ts';
import { resolveDatabase } from '../../../../src/read/databases.ts';
import { databaseArgument } from '../../../arguments.ts';
import { refusalFailure } from '../../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../../output/outcome.ts';

/** `workload database release`: gives up what is held for a stranded database. */
export default class WorkloadDatabaseRelease extends OperatorCommand {
  static override summary = 'Hold nothing any more for a database whose node is lost.';
  static override description =
    "Rescue the data from the node's disk first, or give it up: after this the node can be decommissioned, and its server is deleted with the disk.";
  static override examples = [
    '<%= config.bin %> workload database release orders --dry-run',
    '<%= config.bin %> workload database release orders',
  ];
  static override args = { database: databaseArgument };
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(WorkloadDatabaseRelease);
    const found = await this.view(flags, (view) => resolveDatabase(view, args.database));
    if (!found.ok) throw refusalFailure(found.refusal);
    const { database_id, name } = found.value;
    const done = await this.decide(releaseDatabaseCommand, { database_id }, flags);
    this.log('%s', outcomeLine(done, `nothing is held for ${name} any more`, `${name} was released already`));
    return { database_id, name, ...outcomeJson(done) };
  }
}
