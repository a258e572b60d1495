import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { handle, type Interfaces, run, settings } from '@oclif/core';

/**
 * Runs the command that the process's arguments name. `root` is the folder of package.json, whose `oclif` block configures it; `registry`
 * is the file of commands, beneath root. Not oclif's `execute`: that waits for standard output to drain, which never happens once its
 * reader has gone (`| head`).
 */
export async function main(root: string, registry: string): Promise<void> {
  // Node strips the types itself; oclif would look for ts-node where NODE_ENV is test or development.
  settings.enableAutoTranspile = false;
  try {
    const pjson: Interfaces.PJSON = JSON.parse(await readFile(join(root, 'package.json'), 'utf8'));
    const commands = { strategy: 'explicit', target: registry, identifier: 'commands' } as const;
    await run(process.argv.slice(2), { root, pjson: { ...pjson, oclif: { ...pjson.oclif, commands } } });
  } catch (error) {
    await handle(error instanceof Error ? error : new Error(String(error)));
  }
}
