import { migrate } from '../../../migrations/index.ts';
import { OperatorCommand } from '../../operator-command.ts';

/** `db migrate`: brings a database to what this program needs. */
export default class DbMigrate extends OperatorCommand {
  static override summary = 'Bring the database to what this program needs: log, telemetry, roles, projections.';
  static override description =
    'Repeating it does nothing. The database user has to be the owner of the database, and may create roles.';
  static override examples = ['DATABASE_URL=postgres://owner@db/fleet <%= config.bin %> db migrate'];
  protected override readonly audience = 'owner';

  async run() {
    const { flags } = await this.parse(DbMigrate);
    const { applied, rebuilt } = await migrate((await this.environment(flags)).databaseUrl);
    this.logLines([
      ...applied.map((step) => `applied ${step}`),
      ...(rebuilt ? ['built the projections'] : []),
      ...(applied.length === 0 && !rebuilt ? ['nothing to do'] : []),
    ]);
    return { applied, rebuilt };
  }
}
