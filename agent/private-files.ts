import { stat } from 'node:fs/promises';

/** The first of an identity's directories and key that group or world may touch, with its mode; undefined when all are private. */
export async function findOpenFile(stateDir: string, generation: number): Promise<string | undefined> {
  const directory = `${stateDir}/pki/generations/${generation}`;
  for (const path of [`${stateDir}/pki`, directory, `${directory}/key.pem`]) {
    const { mode } = await stat(path);
    if ((mode & 0o077) !== 0) return `${path} (mode ${(mode & 0o777).toString(8)})`;
  }
  return undefined;
}
