import { Args } from '@oclif/core';
import { releaseLossesCommand } from '../../../../src/commands/loss.ts';
import { POOLS } from '../../../../src/domain/fields.ts';
import { usageFailure } from '../../../failure.ts';
import { findThresholds } from '../../../find-thresholds.ts';
import { dryRunFlag, OperatorCommand } from '../../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../../output/outcome.ts';

/** `fleet loss release`: gives up the silent nodes of a held pool. */
export default class FleetLossRelease extends OperatorCommand {
  static override summary = 'Have the silent nodes of a held pool given up, however many they are.';
  static override description =
    'Those that are silent now may be given up by the next sweep once they have been silent for long enough. Others of the pool that fall silent later are judged anew.';
  static override examples = [
    '<%= config.bin %> fleet loss release application',
    '<%= config.bin %> fleet loss release application --dry-run',
  ];
  static override args = {
    pool: Args.string({ description: 'The pool.', options: [...POOLS], required: true, ignoreStdin: true }),
  };
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { args, flags } = await this.parse(FleetLossRelease);
    const pool = POOLS.find((one) => one === args.pool);
    if (pool === undefined) throw usageFailure(`no pool is called ${args.pool}`);
    const { unhealthyAfterMs } = await findThresholds(
      await this.pool(flags),
      (await this.environment(flags)).variables,
    );
    const done = await this.decide(releaseLossesCommand, { pool, unhealthy_after_ms: unhealthyAfterMs }, flags);
    const released = Array.isArray(done.reply['node_ids']) ? done.reply['node_ids'] : [];
    this.log(
      '%s',
      outcomeLine(done, `${released.length} silent nodes of pool ${pool} may be given up`, 'nothing was held'),
    );
    return { pool, node_ids: released, ...outcomeJson(done) };
  }
}
