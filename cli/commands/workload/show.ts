import { readDeployment } from '../../../src/read/workloads.ts';
import { atFlag, deploymentArgument } from '../../arguments.ts';
import { refusalFailure } from '../../failure.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { momentJson, pastLines } from '../../output/moment-line.ts';
import { deploymentJson, deploymentLines, instanceJson, routeJson } from '../../output/workload.ts';

/** `workload show`: everything of one deployment. */
export default class WorkloadShow extends OperatorCommand {
  static override summary = 'Show one deployment: its instances and where they run, its hostnames and who serves them.';
  static override examples = [
    '<%= config.bin %> workload show shop',
    '<%= config.bin %> workload show shop --at 10m --json',
  ];
  static override args = { deployment: deploymentArgument };
  static override flags = { at: atFlag };

  async run() {
    const { args, flags } = await this.parse(WorkloadShow);
    const read = await this.view(flags, (view) => readDeployment(view, args.deployment));
    if (!read.ok) throw refusalFailure(read.refusal);
    const { deployment, instances, routes, moment, live } = read.value;
    this.logLines([...deploymentLines(read.value), ...pastLines(moment, live)]);
    return {
      ...momentJson(moment),
      deployment: deploymentJson(deployment),
      instances: instances.map(instanceJson),
      routes: routes.map(routeJson),
    };
  }
}
