import { type LogFault, verifyLog } from '../../../src/log/postgres/verify-log.ts';
import { EXIT } from '../../exit-code.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { progressLine } from '../../output/progress.ts';

/** `log verify`: recomputes the hash chain. */
export default class LogVerify extends OperatorCommand {
  static override summary =
    'Recompute the hash chain over the stored bytes and name the first event that was tampered with.';
  static override description =
    'Exits 1 for a fault, 2 when all is as it was written but a newer program wrote some of it. Keep the hash elsewhere: compared later, it proves that the log up to there is the same.';
  static override examples = ['<%= config.bin %> log verify', '<%= config.bin %> log verify --json'];

  async run() {
    const { flags } = await this.parse(LogVerify);
    const progress = progressLine(this.jsonEnabled());
    const verified = await verifyLog(await this.pool(flags), (position) =>
      progress.update(`proved up to position ${position}`),
    );
    progress.end();
    const { position, hash, fault } = verified;
    if (fault !== undefined) process.exitCode = fault.reason === 'newer_program' ? EXIT.usage : EXIT.refused;
    this.logLines([
      ...(fault === undefined ? [] : [describeFault(fault)]),
      `${position} events are as they were written; hash at position ${position}: ${hash}`,
    ]);
    return { position, hash, fault: fault ?? null };
  }
}

function describeFault({ position, reason }: LogFault): string {
  if (reason === 'newer_program') return `position ${position}: written by a newer program; use the newer program`;
  return `position ${position}: ${reason.replaceAll('_', ' ')}`;
}
