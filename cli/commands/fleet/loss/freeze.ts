import { freezeLossesCommand } from '../../../../src/commands/loss.ts';
import { dryRunFlag, OperatorCommand } from '../../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../../output/outcome.ts';

/** `fleet loss freeze`: the switch by hand. */
export default class FleetLossFreeze extends OperatorCommand {
  static override summary = 'Have no silent node given up by itself, whatever happens.';
  static override examples = [
    '<%= config.bin %> fleet loss freeze',
    '<%= config.bin %> fleet loss freeze --dry-run --json',
  ];
  static override flags = { 'dry-run': dryRunFlag };

  async run() {
    const { flags } = await this.parse(FleetLossFreeze);
    const done = await this.decide(freezeLossesCommand, {}, flags);
    this.log('%s', outcomeLine(done, 'no silent node is given up any more', 'it was frozen already'));
    return outcomeJson(done);
  }
}
