import { revokeCertificatesCommand } from '../../../../src/commands/certificate.ts';
import { resolveNode } from '../../../../src/read/resolve-node.ts';
import { nodeArgument } from '../../../arguments.ts';
import { refusalFailure } from '../../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../../output/outcome.ts';

/** `fleet certificates revoke`: locks a node's agent out. */
export default class FleetCertificatesRevoke extends OperatorCommand {
  static override summary = 'Revoke every certificate of a node; its agent is refused from the next request on.';
  static override description =
    'This cannot be taken back: a node without a certificate in force has to be provisioned anew.';
  static override examples = [
    '<%= config.bin %> fleet certificates revoke app-fsn1-7k2m --dry-run',
    '<%= config.bin %> fleet certificates revoke app-fsn1-7k2m',
  ];
  static override args = { node: nodeArgument };
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(FleetCertificatesRevoke);
    const node = await this.view(flags, (view) => resolveNode(view, args.node));
    if (!node.ok) throw refusalFailure(node.refusal);
    const { node_id, name } = node.value;
    const done = await this.decide(revokeCertificatesCommand, { node_id }, flags);
    const text = outcomeLine(done, `the certificates of ${name} are revoked`, `${name} has no certificate to revoke`);
    this.log('%s', text);
    return { node_id, name, ...outcomeJson(done) };
  }
}
