import { randomBytes } from 'node:crypto';
import { lstat, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Writes a file that only its owner may read (0600), whole or not at all: temporary file in the same folder, fsync,
 * rename, fsync of the folder.
 */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString('hex')}.tmp`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(content);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes a rename or unlink inside the folder durable. */
export async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/**
 * Creates the folder (0700) or checks the one that exists: a real folder, no symbolic link, owned by `ownerUid`, closed to
 * everybody else. Throws where it is not: somebody else may have laid it there.
 */
export async function ensurePrivateDirectory(path: string, ownerUid = process.getuid?.()): Promise<void> {
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const found = await lstat(path);
  if (!found.isDirectory()) throw new Error(`${path} is not a folder (a symbolic link or file lies in its place)`);
  if (found.uid !== ownerUid) throw new Error(`${path} belongs to user id ${found.uid}, not to ${ownerUid}`);
  if ((found.mode & 0o077) !== 0) throw new Error(`${path} is open to others; run: chmod 700 ${path}`);
}
