import { createReadStream } from 'node:fs';
import { ExportLineError, type OpenExport, openExport } from '../src/audit/read-export.ts';
import { EXIT } from './exit-code.ts';
import { Failure, usageFailure } from './failure.ts';
import { fileProblem } from './file-problem.ts';

/**
 * Opens an exported log for `use`: a file, or standard input for `-`. Throws a failure for a file that cannot be read, holds nothing, or
 * has a line that is no event; what `use` found before that line comes first.
 */
export async function withExportFile<T>(path: string, use: (exported: OpenExport) => Promise<T>): Promise<T> {
  try {
    const exported = await openExport(path === '-' ? process.stdin : createReadStream(path));
    if (exported === undefined) throw new Failure(EXIT.refused, 'export_empty', `${path} holds no event`);
    return await use(exported);
  } catch (error) {
    if (error instanceof ExportLineError) {
      throw new Failure(EXIT.refused, 'export_unreadable', `${path} ${error.message}`, {
        details: { line: error.line },
        cause: error,
      });
    }
    const problem = fileProblem(error);
    throw problem === undefined ? error : usageFailure(`${path} cannot be read (${problem})`);
  }
}
