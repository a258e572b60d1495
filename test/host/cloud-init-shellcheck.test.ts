import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { renderUserData } from '../../src/hetzner/cloud-init/render.ts';
import { run, someValues, temporaryFolder } from '../hetzner/cloud-init/support.ts';

test('rendered user-data: shellcheck has nothing to say', async () => {
  await run('shellcheck', ['--version']).catch(() => expect.unreachable('the Debian package shellcheck is missing'));
  const outcome = renderUserData(await someValues());
  if (!outcome.ok) expect.unreachable();
  using folder = temporaryFolder();
  const file = join(folder.path, 'user-data.sh');
  writeFileSync(file, outcome.script);
  const { stdout } = await run('shellcheck', ['--severity=style', '--shell=bash', file]).catch(
    (error: { stdout: string }) => error,
  );
  expect(stdout).toBe('');
});
