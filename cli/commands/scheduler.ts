import { readSchedulerConfig } from '../../src/scheduler/config.ts';
import { startScheduler } from '../../src/scheduler/scheduler.ts';
import { usageFailure } from '../failure.ts';
import { OperatorCommand } from '../operator-command.ts';
import { aborted, programLog } from '../program-log.ts';
import { untilStopped } from '../until-stopped.ts';

/** `scheduler`: takes back what runs out. */
export default class Scheduler extends OperatorCommand {
  static override summary =
    'Run a scheduler: one leader among replicas takes back leases that ran out and signs checkpoints of the log.';
  static override description =
    'Configured by environment: PUSHLEFT_SCHEDULER_INTERVAL_SECONDS, PUSHLEFT_LEASE_SECONDS, PUSHLEFT_CHECKPOINT_* (docs/configuration.md). ' +
    'Logs JSON lines; SIGTERM and Ctrl-C end it in order.';
  static override examples = ['DATABASE_URL=postgres://scheduler@db/fleet <%= config.bin %> scheduler'];
  static override enableJsonFlag = false;
  protected override readonly audience = 'scheduler';

  async run() {
    const { flags } = await this.parse(Scheduler);
    const { variables } = await this.environment(flags);
    const log = programLog('scheduler', variables);
    const read = readSchedulerConfig(variables, this.config.version);
    if (!read.ok) throw usageFailure(read.message);
    await untilStopped(async (signal) => {
      const scheduler = startScheduler(read.config, log);
      await aborted(signal);
      log.info('the scheduler stops');
      await scheduler.close();
    });
  }
}
