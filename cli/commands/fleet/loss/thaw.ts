import { thawLossesCommand } from '../../../../src/commands/loss.ts';
import { dryRunFlag, OperatorCommand } from '../../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../../output/outcome.ts';

/** `fleet loss thaw`: the switch by hand. */
export default class FleetLossThaw extends OperatorCommand {
  static override summary = 'End what fleet loss freeze began.';
  static override examples = [
    '<%= config.bin %> fleet loss thaw',
    '<%= config.bin %> fleet loss thaw --dry-run --json',
  ];
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { flags } = await this.parse(FleetLossThaw);
    const done = await this.decide(thawLossesCommand, {}, flags);
    this.log('%s', outcomeLine(done, 'silent nodes are given up again', 'nothing was frozen'));
    return outcomeJson(done);
  }
}
