import { ok } from '../../../src/domain/result.ts';
import { readNode } from '../../../src/read/node-details.ts';
import { hindrances } from '../../../src/read/why.ts';
import { atFlag, nodeArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { momentJson, pastLines } from '../../output/moment-line.ts';

/** `fleet why`: what holds a node where it is. */
export default class FleetWhy extends OperatorCommand {
  static override summary = 'Say what holds a node where it is, and what to do about it.';
  static override examples = [
    '<%= config.bin %> fleet why app-fsn1-7k2m',
    '<%= config.bin %> fleet why 0197c2f4 --json',
  ];
  static override args = { node: nodeArgument };
  static override flags = { at: atFlag };

  async run() {
    const { args, flags } = await this.parse(FleetWhy);
    const explained = await this.view(flags, async (view) => {
      const details = await readNode(view, args.node, 1);
      return details.ok ? ok({ ...details.value, hindrances: hindrances(details.value) }) : details;
    });
    if (!explained.ok) throw refusalFailure(explained.refusal);
    const { node, live, moment, hindrances: found } = explained.value;
    this.logLines([
      `${node.name} is ${node.status}, ${node.schedulable ? 'schedulable' : 'not schedulable'}, provisioning ${node.provision_state}`,
      ...(found.length === 0 ? ['nothing holds it back'] : found.flatMap((h) => [`- ${h.message}`, `  ${h.remedy}`])),
      ...pastLines(moment, live),
    ]);
    const { node_id, name, status, schedulable, provision_state } = node;
    return { ...momentJson(moment), node_id, name, status, schedulable, provision_state, hindrances: found };
  }
}
