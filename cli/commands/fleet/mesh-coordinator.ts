import { Flags } from '@oclif/core';
import { setMeshCoordinatorCommand } from '../../../src/commands/node-exit.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { nodeArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';

/** `fleet mesh-coordinator`: a node that is never given up by itself. */
export default class FleetMeshCoordinator extends OperatorCommand {
  static override summary = 'Say whether a node coordinates the management mesh: such a node is never lost by silence.';
  static override examples = [
    '<%= config.bin %> fleet mesh-coordinator app-fsn1-7k2m',
    '<%= config.bin %> fleet mesh-coordinator app-fsn1-7k2m --off',
  ];
  static override args = { node: nodeArgument };
  static override flags = { off: Flags.boolean({ summary: 'It is none any more.' }), 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(FleetMeshCoordinator);
    const found = await this.view(flags, (view) => resolveNode(view, args.node));
    if (!found.ok) throw refusalFailure(found.refusal);
    const { node_id, name } = found.value;
    const coordinator = !flags.off;
    const done = await this.decide(setMeshCoordinatorCommand, { node_id, coordinator }, flags);
    const is = coordinator ? 'is a mesh coordinator' : 'is no mesh coordinator';
    this.log('%s', outcomeLine(done, `${name} ${is}`, `${name} ${is} already`));
    return { node_id, name, mesh_coordinator: coordinator, ...outcomeJson(done) };
  }
}
