import { readLosses } from '../../../../src/read/losses.ts';
import { atFlag } from '../../../arguments.ts';
import { OperatorCommand } from '../../../operator-command.ts';
import { heldLines, lossesJson } from '../../../output/losses.ts';
import { momentJson, pastLines } from '../../../output/moment-line.ts';

/** `fleet loss status`: whether silent nodes are given up. */
export default class FleetLossStatus extends OperatorCommand {
  static override summary = 'Show whether silent nodes are given up by themselves, pool by pool.';
  static override examples = [
    '<%= config.bin %> fleet loss status',
    '<%= config.bin %> fleet loss status --at 1h --json',
  ];
  static override flags = { at: atFlag };

  async run() {
    const { flags } = await this.parse(FleetLossStatus);
    const { losses, moment, live } = await this.view(flags, async (view) => ({
      losses: await readLosses(view),
      moment: view.moment,
      live: view.telemetry !== null,
    }));
    const held = heldLines(losses);
    const lines = held.length === 0 ? ['silent nodes are given up by themselves, in every pool'] : held;
    this.logLines([...lines, ...pastLines(moment, live)]);
    return { ...momentJson(moment), ...lossesJson(losses) };
  }
}
