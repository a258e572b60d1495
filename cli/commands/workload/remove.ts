import { Flags } from '@oclif/core';
import { removeDeploymentCommand } from '../../../src/commands/deployment.ts';
import { resolveDeployment } from '../../../src/read/workloads.ts';
import { deploymentArgument } from '../../arguments.ts';
import type { FleetChoice } from '../../connection.ts';
import { EXIT } from '../../exit-code.ts';
import { Failure, refusalFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';
import { waitForDeployment } from '../../wait-for-deployment.ts';

/** `workload remove`: ends a deployment. */
export default class WorkloadRemove extends OperatorCommand {
  static override summary = 'End a deployment: its hostnames, then its instances.';
  static override examples = [
    '<%= config.bin %> workload remove shop --wait',
    '<%= config.bin %> workload remove shop --dry-run',
  ];
  static override args = { deployment: deploymentArgument };
  static override flags = {
    wait: Flags.boolean({ summary: 'Wait until nothing is left of it.' }),
    'wait-seconds': Flags.integer({ summary: 'Longest wait, with --wait.', default: 300, min: 1 }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { args, flags } = await this.parse(WorkloadRemove);
    const found = await this.view(flags, (view) => resolveDeployment(view, args.deployment));
    if (!found.ok) throw refusalFailure(found.refusal);
    const { deployment_id, name } = found.value;
    const done = await this.decide(removeDeploymentCommand, { deployment_id }, flags);
    this.log('%s', outcomeLine(done, `${name} is being removed`, `${name} was being removed already`));
    if (flags.wait && !done.dryRun) await this.waited(deployment_id, flags);
    return { deployment_id, name, ...outcomeJson(done) };
  }

  private async waited(id: string, flags: FleetChoice & { 'wait-seconds': number }): Promise<void> {
    const { deployment } = await waitForDeployment(await this.pool(flags), id, {
      until: ['removed'],
      deadlineMs: flags['wait-seconds'] * 1_000,
      say: (line) => this.log('%s', line),
    });
    if (deployment.status === 'removed') return;
    throw new Failure(EXIT.refused, 'wait_timeout', `${deployment.name} is still ${deployment.status}`, {
      remedy: `it goes on; see \`pushleft-controller workload show ${deployment.name}\``,
    });
  }
}
