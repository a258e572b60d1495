import { handle, run, settings } from '@oclif/core';

/**
 * Runs the command that the process's arguments name. `root` is the folder of package.json, whose `oclif` block configures it.
 * Not oclif's `execute`: that waits for standard output to drain, which never happens once its reader has gone (`| head`).
 */
export async function main(root: string): Promise<void> {
  // Node strips the types itself; oclif would look for ts-node where NODE_ENV is test or development.
  settings.enableAutoTranspile = false;
  try {
    await run(process.argv.slice(2), { root });
  } catch (error) {
    await handle(error instanceof Error ? error : new Error(String(error)));
  }
}
