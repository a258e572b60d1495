import { cancelDrainCommand } from '../../../src/commands/node-exit.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { nodeArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';

/** `fleet undrain`: takes a drain back. */
export default class FleetUndrain extends OperatorCommand {
  static override summary = 'Take a drain back, as long as nothing has moved.';
  static override description =
    'The node takes work again. Once something of it has moved, let the drain end and decommission the node.';
  static override examples = [
    '<%= config.bin %> fleet undrain app-fsn1-7k2m',
    '<%= config.bin %> fleet undrain app-fsn1-7k2m --dry-run --json',
  ];
  static override args = { node: nodeArgument };
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(FleetUndrain);
    const found = await this.view(flags, (view) => resolveNode(view, args.node));
    if (!found.ok) throw refusalFailure(found.refusal);
    const { node_id, name } = found.value;
    const done = await this.decide(cancelDrainCommand, { node_id }, flags);
    this.log('%s', outcomeLine(done, `${name} takes work again`, `${name} was not being drained`));
    return { node_id, name, ...outcomeJson(done) };
  }
}
