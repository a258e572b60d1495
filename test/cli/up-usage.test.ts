import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { runCli } from './support/run-cli.ts';

const LAUNCHER = join(import.meta.dirname, '../../cli/bin/pushleft-controller.js');

test.for([
  [
    'up with a database',
    ['--database-url', 'postgres://u@127.0.0.1:1/x'],
    {},
    '--database-url is not for up, which runs a database of its own\n  see --help',
  ],
  [
    'up with a lease that is too short',
    [],
    { PUSHLEFT_LEASE_SECONDS: '2' },
    'PUSHLEFT_LEASE_SECONDS must be a whole number of seconds from 3 to 3600',
  ],
  [
    'up in a folder with a quote',
    ['--state-dir', "it's"],
    {},
    "the state directory's path has a quote, a backslash or a control character in it\n  choose another --state-dir",
  ],
  [
    'up in a folder with a line break',
    ['--state-dir', 'two\nlines'],
    {},
    "the state directory's path has a quote, a backslash or a control character in it\n  choose another --state-dir",
  ],
] as const)('%s: exit 2, says so, begins nothing', async ([, args, env, message]) => {
  await using folder = await temporaryDirectory();
  const run = await runCli(['up', ...args], { cwd: folder.path, env: { ...env } });
  expect(run).toEqual({ code: 2, stdout: '', stderr: `pushleft-controller: ${message}\n` });
  expect(await readdir(folder.path)).toEqual([]);
});

test('the help of up: does not offer a database', async () => {
  const { stdout } = await runCli(['up', '--help']);
  expect([stdout.includes('--state-dir'), stdout.includes('--database-url')]).toEqual([true, false]);
});

test('output onto a full disk: exit 3, one line', () => {
  const full = openSync('/dev/full', 'w');
  try {
    const run = spawnSync(process.execPath, [LAUNCHER, 'fleet', 'list', '--help'], { stdio: ['ignore', full, 'pipe'] });
    expect([run.status, run.stderr.toString()]).toEqual([
      3,
      'pushleft-controller: the output could not be written: ENOSPC\n',
    ]);
  } finally {
    closeSync(full);
  }
});
