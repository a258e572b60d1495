import { takeOfflineCommand } from '../../../src/commands/node-exit.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { nodeArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';

/** `fleet offline`: a drained node is switched off. */
export default class FleetOffline extends OperatorCommand {
  static override summary = 'Say that a drained node is switched off on purpose.';
  static override description =
    'Nobody waits for the node any more, so it does not become lost. It has to be drained and empty. It can be decommissioned, and does not come back.';
  static override examples = [
    '<%= config.bin %> fleet offline app-fsn1-7k2m',
    '<%= config.bin %> fleet offline app-fsn1-7k2m --dry-run --json',
  ];
  static override args = { node: nodeArgument };
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(FleetOffline);
    const found = await this.view(flags, (view) => resolveNode(view, args.node));
    if (!found.ok) throw refusalFailure(found.refusal);
    const { node_id, name } = found.value;
    const done = await this.decide(takeOfflineCommand, { node_id }, flags);
    this.log('%s', outcomeLine(done, `${name} is offline`, `${name} was offline already`));
    return { node_id, name, ...outcomeJson(done) };
  }
}
