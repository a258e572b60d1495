import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../cli/support/run-cli.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { commandsOf } from './support/console-blocks.ts';
import { type RunningUp, startUp } from './support/local-fleet.ts';

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

  test.each(commands)('$line: works as written', async ({ args }) => {
    const { code, stdout, stderr } = await runCli(args, { cwd: folder });
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.any(String) });
    expect(stdout).not.toBe('');
  });
});
