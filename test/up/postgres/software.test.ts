import { chmod, cp, lstat, mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chooseServiceUser } from '../../../src/up/postgres/service-user.ts';
import { locateSoftware, reachableSoftware } from '../../../src/up/postgres/software.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const asRoot = process.getuid?.() === 0;
const user = await chooseServiceUser();
const installed = await locateSoftware();

describe('programs that npm installed', () => {
  test('links made, folders open: run where they are', async () => {
    await using folders = await openFolders();
    const root = await install(folders.path);
    expect(await reachableSoftware({ ...installed, root }, user, folders.copies)).toEqual({ ...installed, root });
    expect(await readdir(folders.copies)).toEqual([]);
  });

  test('install scripts blocked, so no library links: a copy has them, is made once, and is refused once others can change it', async () => {
    await using folders = await openFolders();
    const root = await install(folders.path);
    const library = join(root, 'lib/libicuuc.so.60');
    expect((await lstat(library)).isSymbolicLink()).toBe(true);
    await rm(library);
    const copy = await reachableSoftware({ ...installed, root }, user, folders.copies);
    expect(copy.root.startsWith(join(folders.copies, `pushleft-postgresql-${installed.version}-`))).toBe(true);
    const made = (await stat(copy.root)).ino;
    expect((await stat((await reachableSoftware({ ...installed, root }, user, folders.copies)).root)).ino).toBe(made);
    expect(await readdir(folders.copies)).toHaveLength(1);
    await chmod(copy.root, 0o777);
    await expect(reachableSoftware({ ...installed, root }, user, folders.copies)).rejects.toThrow('changed by others');
  });

  test.runIf(asRoot)('root, under a folder closed to the service user: a copy', async () => {
    await using folders = await openFolders();
    const closed = join(folders.path, 'closed');
    await mkdir(closed, { mode: 0o700 });
    const root = await install(closed);
    const copy = await reachableSoftware({ ...installed, root }, user, folders.copies);
    expect(copy.root).not.toBe(root);
  });
});

async function openFolders(): Promise<{ path: string; copies: string } & AsyncDisposable> {
  const folder = await temporaryDirectory();
  await chmod(folder.path, 0o755);
  const copies = join(folder.path, 'copies');
  await mkdir(copies, { mode: 0o755 });
  return { ...folder, copies };
}

/** As npm would: the package's files below the folder, the static libraries left out. */
async function install(folder: string): Promise<string> {
  const root = join(folder, 'native');
  await cp(installed.root, root, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith('.a') });
  return root;
}
