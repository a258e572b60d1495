import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { type RunningUp, startUp } from './support/local-fleet.ts';

const ROOT = join(import.meta.dirname, '../..');
const LAUNCHER = join(ROOT, 'cli/bin/pushleft-controller.js');
const PREFIX = '$ npx pushleft-controller ';

/** The commands of a page's `console` blocks, in their order, as arguments. */
function commandsOf(page: string): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8');
  const blocks = [...text.matchAll(/^```console\n(.*?)^```/gms)].map((match) => match[1] ?? '');
  return blocks
    .flatMap((block) => block.split('\n'))
    .flatMap((line) => (line.startsWith(PREFIX) ? line.slice(PREFIX.length) : []));
}

const cleanup = new AsyncDisposableStack();
let folder: string;
let up: RunningUp;

beforeAll(async () => {
  ({ path: folder } = cleanup.use(await temporaryDirectory()));
  up = cleanup.use(startUp(folder, ['--nodes', '2']));
  await up.ready();
}, 180_000);

afterAll(() => cleanup.disposeAsync());

describe.each(['README.md', 'docs/operations.md'])('%s', (page) => {
  const commands = commandsOf(page);

  test('has commands to try', () => expect(commands.length).toBeGreaterThan(0));

  test.each(commands)('%s: works as written', async (command) => {
    const { stdout } = await promisify(execFile)(process.execPath, [LAUNCHER, ...command.split(' ')], {
      cwd: folder,
      env: { PATH: process.env['PATH'], HOME: folder },
      timeout: 60_000,
    });
    expect(stdout).not.toBe('');
  });
});
