import { Flags } from '@oclif/core';
import { type ExportTarget, exportEvents, streamTarget, writeExportFile } from '../../../src/audit/write-export.ts';
import { readHead } from '../../../src/log/postgres/reader.ts';
import { EXIT } from '../../exit-code.ts';
import { Failure, usageFailure } from '../../failure.ts';
import { fileProblem } from '../../file-problem.ts';
import { OperatorCommand } from '../../operator-command.ts';

/** `log export`: the events as they lie in the log, for a machine without the database. */
export default class LogExport extends OperatorCommand {
  static override summary = 'Write events as JSON Lines with their hashes, for `log verify FILE` on another machine.';
  static override description =
    'One line an event: position, stream, revision, id, hash, and the exact stored text (body); the first line also has previous_hash. A file is readable by its owner only and appears when it is complete.';
  static override examples = [
    '<%= config.bin %> log export --output events.jsonl',
    '<%= config.bin %> log export --from 400 --to 500 | gzip > part.jsonl.gz',
  ];
  static override flags = {
    from: Flags.integer({ summary: 'The first position.', default: 1, min: 1 }),
    to: Flags.integer({ summary: 'The last position [default: where the log ends now].', min: 1 }),
    output: Flags.string({
      char: 'o',
      summary: 'Where to write; - is standard output.',
      helpValue: 'FILE',
      default: '-',
    }),
    force: Flags.boolean({ summary: 'Replace a file that is there.' }),
  };

  async run() {
    const { flags } = await this.parse(LogExport);
    const { from, output, force } = flags;
    if (output === '-' && this.jsonEnabled()) throw usageFailure('--json tells of a file: give --output');
    const pool = await this.pool(flags);
    const head = await readHead(pool);
    const to = flags.to ?? head.position;
    if (flags.to !== undefined && flags.to < from) throw usageFailure('--to is before --from');
    if (to > head.position || from > head.position + 1) {
      throw new Failure(EXIT.refused, 'position_unknown', `the log ends at position ${head.position}`);
    }
    const exported = await this.write(output, force, (target) => exportEvents(pool, { from, to }, target));
    if (exported === null) return null;
    if (exported === undefined) {
      throw new Failure(EXIT.refused, 'position_missing', `position ${from - 1} is missing from the log`, {
        remedy: 'run `pushleft-controller log verify`',
      });
    }
    const { events, position, hash } = exported;
    const summary = `${events} events from position ${from}; hash at position ${position}: ${hash}`;
    if (output === '-') process.stderr.write(`${summary}\n`);
    else this.logLines([`wrote ${output}: ${summary}`]);
    return { output, from, to: position, events, hash };
  }

  /** Null when the reader of standard output has gone (`| head`), which is no trouble. */
  private async write<T>(
    output: string,
    replace: boolean,
    fill: (target: ExportTarget) => Promise<T>,
  ): Promise<T | null> {
    if (output === '-') return fill(streamTarget(process.stdout)).catch(nullWhenReaderGone);
    try {
      return await writeExportFile(output, { replace }, fill);
    } catch (error) {
      const problem = fileProblem(error);
      if (problem === 'EEXIST') throw usageFailure(`${output} is there already`, 'give another name, or --force');
      throw problem === undefined ? error : usageFailure(`${output} cannot be written (${problem})`);
    }
  }
}

function nullWhenReaderGone(error: NodeJS.ErrnoException): null {
  if (error.code === 'EPIPE') return null;
  throw error;
}
