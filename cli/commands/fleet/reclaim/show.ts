import { ok } from '../../../../src/domain/result.ts';
import { readReclamation, summarize } from '../../../../src/read/reclamation.ts';
import { resolveNode } from '../../../../src/read/resolve-node.ts';
import { namesOf } from '../../../../src/read/workloads.ts';
import { atFlag, nodeArgument } from '../../../arguments.ts';
import { EXIT } from '../../../exit-code.ts';
import { Failure, refusalFailure } from '../../../failure.ts';
import { OperatorCommand } from '../../../operator-command.ts';
import { momentJson, pastLines } from '../../../output/moment-line.ts';
import { reclamationJson, reclamationLines } from '../../../output/reclamation.ts';

/** `fleet reclaim show`: what was taken from a lost node. */
export default class FleetReclaimShow extends OperatorCommand {
  static override summary = 'Show what was taken from a lost node, and how far its replacements and its cleanup are.';
  static override examples = [
    '<%= config.bin %> fleet reclaim show app-fsn1-7k2m',
    '<%= config.bin %> fleet reclaim show app-fsn1-7k2m --at 10m --json',
  ];
  static override args = { node: nodeArgument };
  static override flags = { at: atFlag };

  async run() {
    const { args, flags } = await this.parse(FleetReclaimShow);
    const read = await this.view(flags, async (view) => {
      const node = await resolveNode(view, args.node);
      if (!node.ok) return node;
      const details = await readReclamation(view, node.value);
      const names = namesOf(await view.nodes({}));
      return ok({ node: node.value, details, names, moment: view.moment, live: view.telemetry !== null });
    });
    if (!read.ok) throw refusalFailure(read.refusal);
    const { node, details, names, moment, live } = read.value;
    if (details === undefined) {
      throw new Failure(
        EXIT.refused,
        'nothing_reclaimed',
        `node ${node.name} is ${node.status}: nothing was taken from it`,
      );
    }
    const summary = summarize(details);
    this.logLines([...reclamationLines(details, summary, names), ...pastLines(moment, live)]);
    return { ...momentJson(moment), ...reclamationJson(details, summary) };
  }
}
