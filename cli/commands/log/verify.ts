import { verifyLog } from '../../../src/log/postgres/verify-log.ts';
import { EXIT } from '../../exit-code.ts';
import { OperatorCommand } from '../../operator-command.ts';

/** `log verify`: recomputes the hash chain. */
export default class LogVerify extends OperatorCommand {
  static override summary =
    'Recompute the hash chain over the stored bytes and name the first event that was tampered with.';
  static override description =
    'Exits 1 for a fault. Keep the hash elsewhere: compared later, it proves that the log up to there is the same.';
  static override examples = ['<%= config.bin %> log verify', '<%= config.bin %> log verify --json'];

  async run() {
    const { flags } = await this.parse(LogVerify);
    const { position, hash, fault } = await verifyLog(await this.pool(flags));
    if (fault !== undefined) process.exitCode = EXIT.refused;
    this.logLines([
      ...(fault === undefined ? [] : [`position ${fault.position}: ${fault.reason.replaceAll('_', ' ')}`]),
      `${position} events are as they were written; hash at position ${position}: ${hash}`,
    ]);
    return { position, hash, fault: fault ?? null };
  }
}
