import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { handle, type Interfaces, run, settings } from '@oclif/core';
import { EXIT } from './exit-code.ts';

/**
 * Runs the command that the process's arguments name. `root` is the folder of package.json, whose `oclif` block configures it; `registry`
 * is the file of commands, beneath root. Not oclif's `execute`: that waits for standard output to drain, which never happens once its
 * reader has gone (`| head`).
 */
export async function main(root: string, registry: string): Promise<void> {
  // Node strips the types itself; oclif would look for ts-node where NODE_ENV is test or development.
  settings.enableAutoTranspile = false;
  // Before oclif's own listener, which throws.
  process.stdout.prependListener('error', endUnwritten);
  try {
    const pjson: Interfaces.PJSON = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    const commands = { strategy: 'explicit', target: registry, identifier: 'commands' } as const;
    await run(process.argv.slice(2), { root, pjson: { ...pjson, oclif: { ...pjson.oclif, commands } } });
  } catch (error) {
    await handle(error instanceof Error ? error : new Error(String(error)));
  }
}

/** Ends the process with one line where its output cannot be written (a full disk). A reader that has gone is no trouble. */
function endUnwritten({ code, message }: NodeJS.ErrnoException): void {
  if (code === 'EPIPE') return;
  process.stderr.write(`pushleft-controller: the output could not be written: ${code ?? message}\n`);
  process.exit(EXIT.unavailable);
}
