import { readLosses } from '../../../src/read/losses.ts';
import { currentTerm, forecastSweep, sweepByHand } from '../../../src/scheduler/sweep-by-hand.ts';
import { type FleetChoice, operatorActor } from '../../connection.ts';
import { EXIT } from '../../exit-code.ts';
import { Failure } from '../../failure.ts';
import { findThresholds } from '../../find-thresholds.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { heldLines, lossesJson } from '../../output/losses.ts';
import { forecastJson, forecastLine, sweepFailures, sweepJson, sweepLines } from '../../output/sweep.ts';

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
    const swept = await sweepByHand(pool, await this.led(flags), thresholds);
    const { losses } = await this.view(flags, async (view) => ({ losses: await readLosses(view) }));
    this.logLines([...sweepLines(swept), ...heldLines(losses)]);
    if (sweepFailures(swept.report) > 0) process.exitCode = EXIT.refused;
    return { dry_run: false, ...sweepJson(swept), losses: lossesJson(losses) };
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
