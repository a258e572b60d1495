import { execFileSync } from 'node:child_process';
import { chmod, stat } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { readEnvironmentFile, writeEnvironmentFile } from '../../src/up/environment-files.ts';
import { prepareStateDirectory } from '../../src/up/state-directory.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const variables = {
  DATABASE_URL: 'postgres://pushleft:a$b%20c@/db?host=%2Fvar%2Ftmp&x="y"#z',
  APOSTROPHE: `/home/o'brien/state dir`,
  EMPTY: '',
  BLANKS: '  kept  ',
};

describe('environment file', () => {
  test('written: read back alike, by us and by a shell, and closed to others', async () => {
    await using folder = await temporaryDirectory();
    const path = await writeEnvironmentFile(await prepareStateDirectory(folder.path), 'operator', variables);
    expect(await readEnvironmentFile(folder.path, 'operator')).toEqual(variables);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const seen = execFileSync('sh', [
      '-c',
      '. "$0"; printf "%s\\n" "$DATABASE_URL" "$APOSTROPHE" "$EMPTY" "$BLANKS"',
      path,
    ]);
    expect(seen.toString()).toBe(`${Object.values(variables).join('\n')}\n`);
  });

  test('never written: undefined', async () => {
    await using folder = await temporaryDirectory();
    expect(await readEnvironmentFile(folder.path, 'gateway')).toBe(undefined);
  });

  test('open to others: refused', async () => {
    await using folder = await temporaryDirectory();
    const path = await writeEnvironmentFile(await prepareStateDirectory(folder.path), 'operator', { A: 'b' });
    await chmod(path, 0o640);
    await expect(readEnvironmentFile(folder.path, 'operator')).rejects.toThrow(`run: chmod 600 ${path}`);
  });

  test.each(['two\nlines', `both ' and "`, `' and $HOME`])(
    'value that no quoting carries: refused, not shown',
    async (value) => {
      await using folder = await temporaryDirectory();
      const written = writeEnvironmentFile(await prepareStateDirectory(folder.path), 'operator', { TOKEN: value });
      await expect(written).rejects.toThrow(/^the value of TOKEN has a line break, or quotes of two kinds, and cannot/);
    },
  );
});
