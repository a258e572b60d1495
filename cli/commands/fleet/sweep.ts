import { describeRefusal } from '../../../src/domain/refusal.ts';
import type { SilentNode, SweepReport } from '../../../src/scheduler/sweep.ts';
import { currentTerm, type ForecastNode, forecastSweep, sweepByHand } from '../../../src/scheduler/sweep-by-hand.ts';
import { type FleetChoice, operatorActor } from '../../connection.ts';
import { EXIT } from '../../exit-code.ts';
import { Failure } from '../../failure.ts';
import { findThresholds } from '../../find-thresholds.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { duration } from '../../output/format.ts';

/** `fleet sweep`: one sweep by hand. */
export default class FleetSweep extends OperatorCommand {
  static override summary = 'Look once for silent nodes, as the scheduler does every other second.';
  static override description =
    'A node that is silent for too long becomes unhealthy, then lost. Silence is what the scheduler has counted while every gateway could be reached: without one that runs, nobody counts. One node that fails stops no other; then the exit code is 1.';
  static override examples = ['<%= config.bin %> fleet sweep', '<%= config.bin %> fleet sweep --dry-run --json'];
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { flags } = await this.parse(FleetSweep);
    const pool = await this.pool(flags);
    const { variables } = await this.environment(flags);
    const thresholds = await findThresholds(pool, variables);
    if (flags['dry-run']) {
      const forecasts = await forecastSweep(pool, thresholds);
      this.logLines(forecasts.length === 0 ? ['no node is silent'] : forecasts.map(forecastLine));
      return { dry_run: true, nodes: forecasts.map(forecastJson) };
    }
    const { silent, report } = await sweepByHand(pool, await this.led(flags), thresholds);
    const nodes = silent.map((node) => ({ node, outcome: outcomeOf(node, report) }));
    const { pools } = report;
    this.logLines(
      nodes.length === 0
        ? ['no node is silent']
        : nodes.map(
            ({ node, outcome }) => `${node.name} has been silent for ${duration(node.silent_ms)}: ${outcome.says}`,
          ),
    );
    for (const { command, error } of pools.failed)
      this.log('pool %s could not be judged: %s', command.pool, String(error));
    if (pools.failed.length + report.nodes.failed.length > 0) process.exitCode = EXIT.refused;
    return {
      dry_run: false,
      changed: pools.done + report.nodes.done > 0,
      failed: pools.failed.length + report.nodes.failed.length,
      nodes: nodes.map(({ node, outcome }) => ({ ...nodeJson(node), outcome: outcome.code })),
    };
  }

  private async led(flags: FleetChoice) {
    const term = await currentTerm(await this.pool(flags));
    if (term === undefined) {
      throw new Failure(EXIT.refused, 'no_scheduler', 'no scheduler has led this fleet yet, so nobody counts silence', {
        remedy: 'start one: `pushleft-controller scheduler`',
      });
    }
    const { variables } = await this.environment(flags);
    return { transactor: await this.transactor(flags), actor: operatorActor(variables), term };
  }
}

/** What the sweep made of a silent node. */
function outcomeOf(
  { node_id, status }: SilentNode,
  { nodes }: SweepReport,
): { readonly code: string; readonly says: string } {
  const failed = nodes.failed.find(({ command }) => command.node_id === node_id);
  if (failed !== undefined) return { code: 'failed', says: `FAILED, ${String(failed.error)}` };
  const refused = nodes.refused.find(({ command }) => command.node_id === node_id);
  if (refused !== undefined) {
    const { message, remedy } = describeRefusal(refused.refusal);
    return { code: refused.refusal.code, says: `${message}; ${remedy}` };
  }
  return {
    code: 'decided',
    says: status === 'active' ? 'unhealthy or lost, see `fleet list`' : 'looked at, see `fleet list`',
  };
}

function nodeJson({ node_id, name, pool, status, silent_ms }: SilentNode) {
  return { node_id, name, pool, status, silent_ms };
}

function forecastLine({ node, forecast }: ForecastNode): string {
  const silent = `${node.name} has been silent for ${duration(node.silent_ms)}`;
  if (forecast === undefined) return `${silent}: stays ${node.status}`;
  if (!forecast.ok) return `${silent}: ${describeRefusal(forecast.refusal).message}`;
  return forecast.wouldAppend.length === 0
    ? `${silent}: stays ${node.status}`
    : `${silent}: would append ${forecast.wouldAppend.join(', ')}`;
}

function forecastJson({ node, forecast }: ForecastNode) {
  return {
    ...nodeJson(node),
    outcome: forecast?.ok === false ? forecast.refusal.code : 'decided',
    events: forecast?.ok === true ? forecast.wouldAppend : [],
  };
}
