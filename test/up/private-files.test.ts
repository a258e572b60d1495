import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ensurePrivateDirectory, writePrivateFile } from '../../src/up/private-files.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

describe('private file', () => {
  test('written over one that all could read: new content, closed, nothing left beside it', async () => {
    await using folder = await temporaryDirectory();
    const path = join(folder.path, 'secret');
    await writeFile(path, 'old', { mode: 0o644 });
    await writePrivateFile(path, 'new');
    expect(await readFile(path, 'utf8')).toBe('new');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder.path)).toEqual(['secret']);
  });

  test('cannot be put in place: throws and leaves nothing beside it', async () => {
    await using folder = await temporaryDirectory();
    await mkdir(join(folder.path, 'taken'));
    await expect(writePrivateFile(join(folder.path, 'taken'), 'new')).rejects.toThrow();
    expect(await readdir(folder.path)).toEqual(['taken']);
  });
});

describe('private folder', () => {
  test('missing: made, closed to others', async () => {
    await using folder = await temporaryDirectory();
    await ensurePrivateDirectory(join(folder.path, 'new'));
    expect((await stat(join(folder.path, 'new'))).mode & 0o777).toBe(0o700);
  });

  test('open to others: refused with the remedy', async () => {
    await using folder = await temporaryDirectory();
    await chmod(folder.path, 0o750);
    await expect(ensurePrivateDirectory(folder.path)).rejects.toThrow(`run: chmod 700 ${folder.path}`);
  });

  test('symbolic link: refused', async () => {
    await using folder = await temporaryDirectory();
    await symlink(folder.path, join(folder.path, 'link'));
    await expect(ensurePrivateDirectory(join(folder.path, 'link'))).rejects.toThrow('is not a folder');
  });

  test('owned by another user: refused', async () => {
    await using folder = await temporaryDirectory();
    await expect(ensurePrivateDirectory(folder.path, 12_345)).rejects.toThrow('not to 12345');
  });
});
