import { Flags } from '@oclif/core';
import { listDeployments } from '../../../src/read/workloads.ts';
import { atFlag } from '../../arguments.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { momentJson, pastLines } from '../../output/moment-line.ts';
import { deploymentJson, deploymentTable } from '../../output/workload.ts';

/** `workload list`: one line a deployment. */
export default class WorkloadList extends OperatorCommand {
  static override summary = 'List deployments: status, instances that are ready, hostnames.';
  static override examples = [
    '<%= config.bin %> workload list',
    '<%= config.bin %> workload list --all --at 2h --json',
  ];
  static override flags = { at: atFlag, all: Flags.boolean({ summary: 'Those that were removed as well.' }) };

  async run() {
    const { flags } = await this.parse(WorkloadList);
    const { summaries, moment, live } = await this.view(flags, async (view) => ({
      summaries: await listDeployments(view, flags.all),
      moment: view.moment,
      live: view.telemetry !== null,
    }));
    const lines = summaries.length === 0 ? ['no deployments'] : deploymentTable(summaries);
    this.logLines([...lines, ...pastLines(moment, live)]);
    return {
      ...momentJson(moment),
      deployments: summaries.map(({ deployment, wanted, ready }) => ({ ...deploymentJson(deployment), wanted, ready })),
    };
  }
}
