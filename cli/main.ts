import { execute, settings } from '@oclif/core';

/** Runs the command that the process's arguments name. `root` is the folder of package.json, whose `oclif` block configures it. */
export async function main(root: string): Promise<void> {
  // Node strips the types itself; oclif would look for ts-node where NODE_ENV is test or development.
  settings.enableAutoTranspile = false;
  await execute({ dir: root, loadOptions: { root } });
}
