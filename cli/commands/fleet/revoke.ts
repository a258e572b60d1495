import { revokeNodeCommand } from '../../../src/commands/node-exit.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { nodeArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';

/** `fleet revoke`: a host is not trusted any more. */
export default class FleetRevoke extends OperatorCommand {
  static override summary =
    'Take everything from a node whose host is not trusted any more, and revoke its certificates.';
  static override description =
    'As if it were lost, at once: its services are replaced elsewhere, its jobs are fenced, its databases are stranded. Its agent is told nothing any more, not even what to clean up: isolate the host, then decommission the node.';
  static override examples = [
    '<%= config.bin %> fleet revoke app-fsn1-7k2m',
    '<%= config.bin %> fleet revoke app-fsn1-7k2m --dry-run --json',
  ];
  static override args = { node: nodeArgument };
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(FleetRevoke);
    const found = await this.view(flags, (view) => resolveNode(view, args.node));
    if (!found.ok) throw refusalFailure(found.refusal);
    const { node_id, name } = found.value;
    const done = await this.decide(revokeNodeCommand, { node_id }, flags);
    this.log('%s', outcomeLine(done, `${name} is revoked`, `${name} was revoked already`));
    return { node_id, name, ...outcomeJson(done) };
  }
}
