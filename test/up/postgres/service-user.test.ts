import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { chooseServiceUser } from '../../../src/up/postgres/service-user.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

describe('user that PostgreSQL runs as', () => {
  test('ordinary user: none other', async () => expect(await chooseServiceUser(1000)).toBe(undefined));

  test('root: nobody', async () => {
    await using passwd = await passwdFile('root:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:\nnobody:x:65534:65533::/:\n');
    expect(await chooseServiceUser(0, passwd.path)).toEqual({ name: 'nobody', uid: 65_534, gid: 65_533 });
  });

  test('root, no nobody: the next account of the list', async () => {
    await using passwd = await passwdFile('# a comment\n+nis\nroot:x:0:0::/root:/bin/sh\ndaemon:x:1:1::/:\n');
    expect(await chooseServiceUser(0, passwd.path)).toEqual({ name: 'daemon', uid: 1, gid: 1 });
  });

  test('root, nobody is root by another name: refused', async () => {
    await using passwd = await passwdFile('root:x:0:0::/root:/bin/sh\nnobody:x:0:0::/:\n');
    await expect(chooseServiceUser(0, passwd.path)).rejects.toThrow('refuses to run as root');
  });
});

async function passwdFile(content: string): Promise<{ path: string } & AsyncDisposable> {
  const folder = await temporaryDirectory();
  const path = join(folder.path, 'passwd');
  await writeFile(path, content);
  return { path, [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose]() };
}
