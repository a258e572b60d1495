import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { buildCli } from '../../cli/build.ts';
import { runCli } from './support/run-cli.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Not dist/cli, which other tests may be running from. */
const NAME = `cli-test-${randomBytes(4).toString('hex')}`;
const OUT = join(ROOT, 'dist', NAME);

beforeAll(() => buildCli(NAME));

afterAll(() => rm(OUT, { recursive: true, force: true }));

/** Runs the bundle without the launcher, which would look for it in dist/cli. */
async function runBundle(...args: string[]): Promise<string> {
  const start = `const { main } = await import('${OUT}/main.mjs'); await main('${ROOT}', './dist/${NAME}/registry.mjs');`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', start, '--', 'script', ...args],
    {
      cwd: tmpdir(),
      env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir() },
    },
  );
  return stdout;
}

test('a command from the bundle: prints what it prints from its sources', async () => {
  const [bundled, { stdout }] = await Promise.all([runBundle('db', 'roles'), runCli(['db', 'roles'])]);
  expect(bundled).toBe(stdout);
});

test('a command that stays outside the bundle: is found from it', async () => {
  expect(await runBundle('gateway', '--help')).toContain('Run a gateway');
});

test('what went in: our sources, so that a change of one is noticed', async () => {
  const inputs: string[] = JSON.parse(await readFile(join(OUT, 'inputs.json'), 'utf8'));
  expect(inputs).toEqual(
    expect.arrayContaining(['cli/commands/fleet/list.ts', 'src/read/live-view.ts', 'package-lock.json']),
  );
  expect(inputs.filter((path) => path.startsWith('node_modules/'))).toEqual([]);
});
