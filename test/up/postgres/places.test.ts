import { lstat, mkdir, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { preparePlaces, readRecord, socketPath, writeRecord } from '../../../src/up/postgres/places.ts';
import { chooseServiceUser } from '../../../src/up/postgres/service-user.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const user = await chooseServiceUser();

describe('ordinary user', () => {
  test('short path: everything lies in the state directory', async () => {
    await using folder = await temporaryDirectory();
    const places = await preparePlaces(folder.path, undefined, undefined);
    expect(places.dataDir).toBe(join(folder.path, 'postgres/data'));
    expect(places.socketDir).toBe(join(folder.path, 'postgres/socket'));
  });

  test('longest path that a socket can have: still in the state directory', async () => {
    await using folder = await temporaryDirectory();
    const stateDir = await directoryWithSocketPathOf(107, folder.path);
    const { socketDir } = await preparePlaces(stateDir, undefined, undefined, { shortDir: folder.path });
    expect(Buffer.byteLength(socketPath(socketDir))).toBe(107);
    expect(dirname(dirname(socketDir))).toBe(stateDir);
  });

  test('one byte longer: a short folder of 0700, which the next start takes again', async () => {
    await using folder = await temporaryDirectory();
    const stateDir = await directoryWithSocketPathOf(108, folder.path);
    const first = await preparePlaces(stateDir, undefined, undefined, { shortDir: folder.path });
    expect(dirname(first.socketDir)).toBe(folder.path);
    expect((await lstat(first.socketDir)).mode & 0o777).toBe(0o700);
    await writeRecord(first, null);
    const second = await preparePlaces(stateDir, undefined, await readRecord(stateDir), { shortDir: folder.path });
    expect(second.socketDir).toBe(first.socketDir);
  });

  test('recorded short folder gone, as after a reboot: another one', async () => {
    await using folder = await temporaryDirectory();
    const stateDir = await directoryWithSocketPathOf(108, folder.path);
    const first = await preparePlaces(stateDir, undefined, undefined, { shortDir: folder.path });
    await writeRecord({ ...first, socketDir: join(folder.path, 'pushleft-gone') }, null);
    const second = await preparePlaces(stateDir, undefined, await readRecord(stateDir), { shortDir: folder.path });
    expect(basename(second.socketDir)).toMatch(/^pushleft-\w{6}$/);
  });
});

describe.runIf(user !== undefined)('root', () => {
  test('data and socket lie under the shared folder, closed and owned by the service user', async () => {
    await using folder = await temporaryDirectory();
    const [stateDir, sharedDir] = await folders(folder.path);
    const places = await preparePlaces(stateDir, user, undefined, { sharedDir });
    expect(dirname(places.home)).toBe(sharedDir);
    expect(await lstat(places.home)).toMatchObject({ uid: user?.uid, mode: 0o040_700 });
    expect(await lstat(places.socketDir)).toMatchObject({ uid: user?.uid, mode: 0o040_700 });
  });

  test('state directory moved: its data are found where they were', async () => {
    await using folder = await temporaryDirectory();
    const [stateDir, sharedDir] = await folders(folder.path);
    const places = await preparePlaces(stateDir, user, undefined, { sharedDir });
    const record = { version: 1, state_dir: '/moved/away', home: places.home, socket_dir: '', process: null } as const;
    expect((await preparePlaces(stateDir, user, record, { sharedDir })).home).toBe(places.home);
  });

  test('state directory copied: refused, the two would share one database', async () => {
    await using folder = await temporaryDirectory();
    const [stateDir, sharedDir] = await folders(folder.path);
    const original = join(folder.path, 'original');
    await mkdir(original, { mode: 0o700 });
    await writeRecord(await preparePlaces(original, user, undefined, { sharedDir }), null);
    await expect(preparePlaces(stateDir, user, await readRecord(original), { sharedDir })).rejects.toThrow(
      `${stateDir} is a copy of ${original}`,
    );
  });

  test('symbolic link laid in the place of the folder: refused', async () => {
    await using folder = await temporaryDirectory();
    const [stateDir, sharedDir] = await folders(folder.path);
    const { home } = await preparePlaces(stateDir, user, undefined, { sharedDir: await emptyFolder(folder.path) });
    await symlink(home, join(sharedDir, basename(home)));
    await expect(preparePlaces(stateDir, user, undefined, { sharedDir })).rejects.toThrow('is not a folder');
  });

  test('folder open to others: refused', async () => {
    await using folder = await temporaryDirectory();
    const [stateDir, sharedDir] = await folders(folder.path);
    const { home } = await preparePlaces(stateDir, user, undefined, { sharedDir: await emptyFolder(folder.path) });
    await mkdir(join(sharedDir, basename(home)), { mode: 0o755 });
    await expect(preparePlaces(stateDir, user, undefined, { sharedDir })).rejects.toThrow('is open to others');
  });
});

test('damaged record: the error names the file', async () => {
  await using folder = await temporaryDirectory();
  await writeFile(join(folder.path, 'postgres.json'), '{');
  await expect(readRecord(folder.path)).rejects.toThrow(`${folder.path}/postgres.json cannot be read`);
});

async function folders(parent: string): Promise<[stateDir: string, sharedDir: string]> {
  const stateDir = join(parent, 'state');
  await mkdir(stateDir, { mode: 0o700 });
  return [stateDir, await emptyFolder(parent)];
}

async function emptyFolder(parent: string): Promise<string> {
  const path = join(parent, `shared-${process.hrtime.bigint()}`);
  await mkdir(path);
  return path;
}

/** A state directory below `parent` whose socket's path would have exactly so many bytes. */
async function directoryWithSocketPathOf(bytes: number, parent: string): Promise<string> {
  const rest = bytes - Buffer.byteLength(socketPath(join(parent, '/postgres/socket'))) - 1;
  const path = join(parent, 'x'.repeat(rest));
  await mkdir(path, { mode: 0o700 });
  return path;
}
