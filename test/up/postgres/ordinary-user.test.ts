import { execFile } from 'node:child_process';
import { chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { chooseServiceUser } from '../../../src/up/postgres/service-user.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

const somebody = await chooseServiceUser();

test.runIf(somebody !== undefined)('ordinary user: data and socket lie in the state directory', async () => {
  await using folder = await temporaryDirectory();
  const stateDir = join(folder.path, 'state');
  await mkdir(stateDir, { mode: 0o700 });
  for (const path of [folder.path, stateDir]) await chown(path, somebody?.uid ?? 0, somebody?.gid ?? 0);
  const script = join(import.meta.dirname, 'fixtures/as-ordinary-user.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [script, stateDir]);
  expect(JSON.parse(stdout)).toEqual({
    dataDir: join(stateDir, 'postgres/data'),
    socketDir: join(stateDir, 'postgres/socket'),
    superuser: 'pushleft',
  });
});
