import { retryDeploymentCommand } from '../../../src/commands/deployment.ts';
import { resolveDeployment } from '../../../src/read/workloads.ts';
import { deploymentArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';

/** `workload retry`: replaces what failed. */
export default class WorkloadRetry extends OperatorCommand {
  static override summary = "Replace a deployment's failed instances, one generation later.";
  static override examples = [
    '<%= config.bin %> workload retry shop',
    '<%= config.bin %> workload retry shop --dry-run',
  ];
  static override args = { deployment: deploymentArgument };
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(WorkloadRetry);
    const found = await this.view(flags, (view) => resolveDeployment(view, args.deployment));
    if (!found.ok) throw refusalFailure(found.refusal);
    const { deployment_id, name } = found.value;
    const done = await this.decide(retryDeploymentCommand, { deployment_id }, flags);
    this.log('%s', outcomeLine(done, `what failed of ${name} is replaced`, `nothing of ${name} has failed`));
    return { deployment_id, name, ...outcomeJson(done) };
  }
}
