import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * Writes a file so that a crash leaves either the old content or the new one: a temporary file beside it (created 0600,
 * so that a key is never readable for a moment), fsync, rename, fsync of the directory. `mode` is set whatever the umask.
 * Throws what the file system says; the temporary file is gone then. One that a crash left is named `.<name>.<hex>.tmp`.
 */
export async function writeFileAtomic(path: string, data: string | Buffer, mode: number): Promise<void> {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await writeDurably(temporary, data, mode);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncDirectory(dirname(path));
}

/** Makes the names in a directory durable: what was created, renamed or removed in it survives a power cut. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function writeDurably(path: string, data: string | Buffer, mode: number): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(data);
    await file.chmod(mode);
    await file.sync();
  } finally {
    await file.close();
  }
}
