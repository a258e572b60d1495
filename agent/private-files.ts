import { stat } from 'node:fs/promises';

/** The first of an identity's directories and keys that group or world may touch, with its mode; undefined when all are private. */
export async function findOpenFile(stateDir: string, generations: readonly number[]): Promise<string | undefined> {
  const directories = generations.map((generation) => `${stateDir}/pki/generations/${generation}`);
  for (const path of [`${stateDir}/pki`, ...directories.flatMap((directory) => [directory, `${directory}/key.pem`])]) {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) return `${path} (mode ${(mode & 0o777).toString(8)})`;
  }
  return undefined;
}
