import { chown, mkdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  chooseStateDirectory,
  findStateDirectory,
  prepareStateDirectory,
  stateDirectoryProblem,
} from '../../src/up/state-directory.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

describe('up', () => {
  const cwd = '/checkout';
  test('nothing said: .pushleft where it is started', () =>
    expect(chooseStateDirectory({ env: {}, cwd })).toBe('/checkout/.pushleft'));
  test('environment: that one', () =>
    expect(chooseStateDirectory({ env: { PUSHLEFT_STATE_DIR: 'mine' }, cwd })).toBe('/checkout/mine'));
  test('environment empty: as if it were not there', () =>
    expect(chooseStateDirectory({ env: { PUSHLEFT_STATE_DIR: '' }, cwd })).toBe('/checkout/.pushleft'));
  test('flag and environment: the flag', () =>
    expect(chooseStateDirectory({ flag: '/flag', env: { PUSHLEFT_STATE_DIR: '/env' }, cwd })).toBe('/flag'));
});

describe('CLI command', () => {
  test('in a sub-folder: the nearest upwards', async () => {
    await using folder = await temporaryDirectory();
    const cwd = join(folder.path, 'inner/deep/deeper');
    await mkdir(cwd, { recursive: true });
    await mkdir(join(folder.path, '.pushleft'));
    await mkdir(join(folder.path, 'inner/.pushleft'));
    expect(await findStateDirectory({ env: {}, cwd })).toBe(join(folder.path, 'inner/.pushleft'));
  });

  test('none anywhere: undefined', async () => {
    await using folder = await temporaryDirectory();
    expect(await findStateDirectory({ env: {}, cwd: folder.path })).toBe(undefined);
  });

  test('flag: not searched', async () => {
    await using folder = await temporaryDirectory();
    await mkdir(join(folder.path, '.pushleft'));
    expect(await findStateDirectory({ flag: '/elsewhere', env: {}, cwd: folder.path })).toBe('/elsewhere');
  });

  test.runIf(process.getuid?.() === 0)('nearest belongs to another user: refused, and the flag named', async () => {
    await using folder = await temporaryDirectory();
    const planted = join(folder.path, '.pushleft');
    await mkdir(planted);
    await chown(planted, 12_345, 12_345);
    await expect(findStateDirectory({ env: {}, cwd: folder.path })).rejects.toThrow(`--state-dir ${planted}`);
  });
});

test('prepared: it and its folders are closed to others', async () => {
  await using folder = await temporaryDirectory();
  const stateDir = await prepareStateDirectory(join(folder.path, 'a/b'));
  expect(stateDir).toBe(join(folder.path, 'a/b'));
  for (const path of [stateDir, join(stateDir, 'logs'), join(stateDir, 'env')]) {
    expect((await stat(path)).mode & 0o777).toBe(0o700);
  }
});

test.for(["/a'b", '/a"b', '/a\nb', '/a`b', '/a\\b'])('a path that settings do not carry (%j): a problem', (path) =>
  expect(stateDirectoryProblem(path)).toMatch(/^the state directory's path has a quote/),
);

test('a path with blanks and accents: none', () => expect(stateDirectoryProblem('/my fleet/été')).toBe(undefined));
