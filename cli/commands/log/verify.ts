import { Args } from '@oclif/core';
import { verifyLog } from '../../../src/log/postgres/verify-log.ts';
import { GENESIS, type LogVerification, type ProofOptions, proveRows } from '../../../src/log/prove.ts';
import { checkpointFlags, readCheckpoints } from '../../checkpoint-flags.ts';
import type { FleetChoice } from '../../connection.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { agreedCheckpoints, checkpointLine, faultLine, proofExitCode } from '../../output/log-proof.ts';
import { progressLine } from '../../output/progress.ts';
import { withExportFile } from '../../read-export-file.ts';

/** What was proved, and after which position it began. */
type Proved = LogVerification & { readonly after: number };

/** `log verify`: recomputes the hash chain. */
export default class LogVerify extends OperatorCommand {
  static override summary =
    'Recompute the hash chain over the stored bytes and name the first event that was tampered with.';
  static override description =
    'Exits 1 for a fault, 2 when all is as it was written but a newer program wrote some of it. FILE is what `log export` wrote and needs no database. The chain alone proves nothing against somebody who owned the database and computed it anew; a signed checkpoint (`log checkpoint`) that was kept elsewhere does.';
  static override examples = [
    '<%= config.bin %> log verify',
    '<%= config.bin %> log verify events.jsonl',
    '<%= config.bin %> log verify --checkpoint 412.checkpoint.json --public-key audit.pub.pem',
  ];
  static override args = {
    file: Args.string({
      description: 'An exported log instead of the database; - for standard input.',
      ignoreStdin: true,
    }),
  };
  static override flags = checkpointFlags;

  async run() {
    const { args, flags } = await this.parse(LogVerify);
    const checkpoints = await readCheckpoints(flags);
    const progress = progressLine(this.jsonEnabled());
    const proved = await this.prove(args.file, flags, {
      checkpoints,
      onProgress: (position) => progress.update(`proved up to position ${position}`),
    });
    progress.end();
    const { after, position, hash, fault } = proved;
    process.exitCode = proofExitCode(fault);
    const agreed = agreedCheckpoints(checkpoints, proved);
    this.logLines([
      ...(fault === undefined
        ? []
        : [
            faultLine(fault) +
              (args.file === undefined || fault.position <= after ? '' : ` (line ${fault.position - after})`),
          ]),
      ...agreed.map(checkpointLine),
      ...(after === 0
        ? []
        : [`the file begins at position ${after + 1}, not at the first event: what came before is not proved`]),
      `${position - after} events are as they were written; hash at position ${position}: ${hash}`,
    ]);
    return {
      from: after + 1,
      position,
      hash,
      fault: fault ?? null,
      checkpoints: agreed.map((checkpoint) => ({ position: checkpoint.position, signed_at: checkpoint.signed_at })),
    };
  }

  private async prove(file: string | undefined, flags: FleetChoice, options: ProofOptions): Promise<Proved> {
    if (file === undefined) return { ...(await verifyLog(await this.pool(flags), options)), after: GENESIS.position };
    return withExportFile(file, async ({ start, pages }) => ({
      ...(await proveRows(pages, start, options)),
      after: start.position,
    }));
  }
}
