import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';

/**
 * Writes a file so that a crash leaves either the old content or the new one: a temporary file beside it (created 0600,
 * so that a key is never readable for a moment), fsync, rename, fsync of the directory. `mode` is set whatever the umask.
 * Throws what the file system says; the temporary file is gone then. One that a crash left is named `.<name>.<hex>.tmp`.
 * `before` is told each step that is about to be done, so that a test can stop there as a crash would.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Buffer,
  mode: number,
  before: FileStep = nothingBefore,
): Promise<void> {
  const name = basename(path);
  const temporary = join(dirname(path), `.${name}.${randomBytes(6).toString('hex')}.tmp`);
  try {
    await before(`write ${name}`);
    await writeDurably(temporary, data, mode, () => before(`fsync ${name}`));
    await before(`rename ${name}`);
    await rename(temporary, path);
  } catch (error) {
    await before(`clear ${name}`);
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolderOf(path, before);
}

/** Removes a file so that it stays removed; nothing where there is none. */
export async function removeFileDurably(path: string, before: FileStep = nothingBefore): Promise<void> {
  await before(`remove ${basename(path)}`);
  await rm(path, { force: true });
  await syncFolderOf(path, before);
}

/** Called before a step on the disk, with its name. */
export type FileStep = (step: string) => Promise<void> | void;

const nothingBefore: FileStep = () => undefined;

/** Makes the names in a file's folder durable: what was created, renamed or removed in it survives a power cut. */
export async function syncFolderOf(path: string, before: FileStep = nothingBefore): Promise<void> {
  await before(`fsync folder of ${basename(path)}`);
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

async function writeDurably(path: string, data: string | Buffer, mode: number, sync: FileStep): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(data);
    await file.chmod(mode);
    await sync(path);
    await file.sync();
  } finally {
    await file.close();
  }
}
