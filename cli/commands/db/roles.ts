import { ROLES } from '../../../migrations/003-roles.ts';
import { grantStatements } from '../../../src/database/grants.ts';
import { OperatorCommand } from '../../operator-command.ts';

/** `db roles`: the grants, as SQL. */
export default class DbRoles extends OperatorCommand {
  static override summary = 'Print the grants that operators, gateways, schedulers and readers need, as SQL.';
  static override description =
    '`db migrate` has granted them to the group roles already. Make a login a member of its group: ' +
    'GRANT pushleft_operator TO alice. Needs no database.';
  static override examples = ['<%= config.bin %> db roles'];

  async run() {
    await this.parse(DbRoles);
    const statements = [...ROLES.map((role) => `CREATE ROLE ${role} NOLOGIN`), ...grantStatements()];
    this.logLines(statements.map((statement) => `${statement};`));
    return { roles: ROLES, statements };
  }
}
