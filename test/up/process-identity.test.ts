import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  argumentsOf,
  identifyProcess,
  isRunning,
  type ProcessIdentity,
  signalProcess,
  waitUntilGone,
} from '../../src/up/process-identity.ts';

let child: ChildProcess;
let identity: ProcessIdentity;
beforeEach(() => {
  child = spawn('sleep', ['60'], { detached: true, argv0: 'sleep (a b) c' });
  const found = identifyProcess(child.pid ?? 0);
  if (found === undefined) throw new Error('sleep does not run');
  identity = found;
});
afterEach(() => child.kill('SIGKILL'));

describe('running process', () => {
  test('identified: the same each time', () => {
    expect(identifyProcess(identity.pid)).toEqual(identity);
    expect(isRunning(identity)).toBe(true);
  });

  test('signalled: gone', async () => {
    expect(signalProcess(identity, 'SIGTERM')).toBe(true);
    expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
    expect(isRunning(identity)).toBe(false);
    expect(argumentsOf(identity.pid)).toEqual([]);
  });

  test('waited for in vain: false at the deadline', async () => expect(await waitUntilGone(identity, 40)).toBe(false));
});

describe('another process with the same pid', () => {
  test.each([
    ['other start time', { start_ticks: '1' }],
    ['other boot', { boot_id: '00000000-0000-0000-0000-000000000000' }],
  ])('%s: not taken for it, not signalled', (_, difference) => {
    const former = { ...identity, ...difference };
    expect(isRunning(former)).toBe(false);
    expect(signalProcess(former, 'SIGKILL')).toBe(false);
    expect(signalProcess(former, 'SIGKILL', { group: true })).toBe(false);
    expect(isRunning(identity)).toBe(true);
  });
});

test('pid of nobody: undefined', () => expect(identifyProcess(2 ** 30)).toBe(undefined));

test('dead child whose parent has not asked for its status: not running', async () => {
  // A shell that replaces itself by a program which never waits for the child it inherits.
  const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const [line] = await once(parent.stdout.setEncoding('utf8'), 'data');
  const zombie = Number(line);
  await expect.poll(() => identifyProcess(zombie), { interval: 10, timeout: 5_000 }).toBe(undefined);
  expect(process.kill(zombie, 0)).toBe(true);
  parent.kill('SIGKILL');
});
