import { admitNodeCommand } from '../../../src/commands/node.ts';
import { describeRefusal } from '../../../src/domain/refusal.ts';
import { ok } from '../../../src/domain/result.ts';
import { resolveNodes } from '../../../src/read/resolve-node.ts';
import { nodesArgument, poolFlag } from '../../arguments.ts';
import { refusalExitCodes } from '../../exit-code.ts';
import { refusalFailure, usageFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';

/** `fleet admit`: lets the scheduler place work on enrolled nodes. */
export default class FleetAdmit extends OperatorCommand {
  static override summary = 'Let the scheduler place work on enrolled nodes.';
  static override description =
    'A node is admitted when it is active, was heard within the last 60 seconds and its capacity is recorded. Several nodes are ' +
    'admitted one by one; one that is refused does not keep the others back.';
  static override examples = [
    '<%= config.bin %> fleet admit app-fsn1-7k2m',
    '<%= config.bin %> fleet admit app-fsn1-7k2m build-nbg1-q4x9 --dry-run',
    { description: 'Every active node of a pool:', command: '<%= config.bin %> fleet admit --pool application' },
  ];
  static override args = { node: nodesArgument };
  static override flags = { pool: poolFlag, 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(FleetAdmit);
    const { pool } = flags;
    if ((args.node === undefined) === (pool === undefined)) throw usageFailure('name nodes, or a --pool', 'see --help');
    const chosen = await this.view(flags, async (view) =>
      pool === undefined ? resolveNodes(view, args.node ?? []) : ok(await view.nodes({ pool, status: 'active' })),
    );
    if (!chosen.ok) throw refusalFailure(chosen.refusal);
    if (chosen.value.length === 0) this.log('no active nodes');
    const nodes = [];
    for (const { node_id, name } of chosen.value) {
      const decided = await this.attempt(admitNodeCommand, { node_id }, flags);
      if (!decided.ok && chosen.value.length === 1) throw refusalFailure(decided.refusal);
      if (decided.ok) {
        this.log('%s', outcomeLine(decided.value, `${name} is schedulable`, `${name} was schedulable already`));
        nodes.push({ node_id, name, ...outcomeJson(decided.value), error: null });
      } else {
        const { code, details } = decided.refusal;
        const { message, remedy } = describeRefusal(decided.refusal);
        process.exitCode = refusalExitCodes[code];
        this.log('%s', `${name} is not admitted: ${message}; ${remedy}`);
        nodes.push({
          node_id,
          name,
          dry_run: flags['dry-run'],
          changed: false,
          events: [],
          error: { code, message, remedy, details },
        });
      }
    }
    return { nodes };
  }
}
