import { existsSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { endOrphans, endProcess } from '../../src/up/end-process.ts';
import type { ProcessExit } from '../../src/up/log-file.ts';
import { argumentsOf, identifyProcess, isRunning } from '../../src/up/process-identity.ts';
import { type ProgramStart, Supervisor } from '../../src/up/processes.ts';
import { prepareStateDirectory } from '../../src/up/state-directory.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let stateDir: string;
let supervisor: Supervisor;
let recorded: string[][];
let unexpected: [name: string, exit: ProcessExit][];

beforeEach(async () => {
  folder = await temporaryDirectory();
  stateDir = await prepareStateDirectory(folder.path);
  recorded = [];
  unexpected = [];
  supervisor = new Supervisor({
    stateDir,
    record: async (running) => {
      recorded.push(running.map(({ name }) => name));
    },
    onUnexpectedExit: ({ name }, exit) => unexpected.push([name, exit]),
  });
});
afterEach(async () => {
  supervisor.killAll();
  await waitFor(() => supervisor.running.length === 0, { what: 'all processes are gone' });
  await folder[Symbol.asyncDispose]();
});

/** A shell script that says `ready` by creating <name>.ready. */
function shell(name: string, script: string): ProgramStart {
  const flag = join(stateDir, `${name}.ready`);
  return {
    name,
    command: '/bin/sh',
    args: ['-c', script],
    env: { PATH: '/usr/bin:/bin', READY: flag, ORDER: join(stateDir, 'order') },
    ready: () => existsSync(flag),
    readyDeadlineMs: 20_000,
  };
}

const obedient = `trap 'echo "$0" >> "$ORDER"; exit 0' TERM; : > "$READY"; while :; do sleep 0.05; done`;

describe('start', () => {
  test('ready: runs, recorded, its output in a log of its own that is closed to others', async () => {
    const started = await supervisor.start(shell('gateway', `echo hello; echo oops >&2; ${obedient}`));
    expect(isRunning(started.process)).toBe(true);
    expect(recorded).toEqual([['gateway']]);
    expect(started.logFile).toBe(join(stateDir, 'logs/gateway.log'));
    expect(await readFile(started.logFile, 'utf8')).toBe('hello\noops\n');
    expect((await stat(started.logFile)).mode & 0o777).toBe(0o600);
  });

  test('environment: what was given and nothing of ours', async () => {
    process.env['PUSHLEFT_TEST_CANARY'] = 'canary';
    const started = await supervisor.start(shell('env', `env; ${obedient}`));
    delete process.env['PUSHLEFT_TEST_CANARY'];
    const log = await readFile(started.logFile, 'utf8');
    expect(log).toContain(`READY=${join(stateDir, 'env.ready')}`);
    expect(log).not.toContain('CANARY');
  });

  test('leads a session of its own: Ctrl-C at our terminal does not reach it', async () => {
    const { process } = await supervisor.start(shell('gateway', obedient));
    const fields = (await readFile(`/proc/${process.pid}/stat`, 'utf8')).split(') ')[1]?.split(' ');
    expect(fields?.slice(2, 4)).toEqual([String(process.pid), String(process.pid)]);
  });

  test('ends before it is ready: the error has the exit code and its last words', async () => {
    await expect(supervisor.start(shell('gateway', 'echo port in use; exit 3'))).rejects.toThrow(
      /^gateway ended while starting: exit code 3; port in use$/,
    );
    await waitFor(() => recorded.at(-1)?.length === 0, { what: 'its end is recorded' });
    expect(unexpected).toEqual([]);
  });

  test('last words: only those of this start', async () => {
    await writeFile(join(stateDir, 'logs/gateway.log'), 'from yesterday\n');
    await expect(supervisor.start(shell('gateway', 'exit 3'))).rejects.toThrow(
      /^gateway ended while starting: exit code 3$/,
    );
  });

  test('never ready: stopped at the deadline', async () => {
    const unready = shell('gateway', 'echo still busy; exec sleep 60');
    await expect(supervisor.start({ ...unready, readyDeadlineMs: 200 })).rejects.toThrow(
      /^gateway is not ready after 200 ms; still busy$/,
    );
    expect(supervisor.running).toEqual([]);
    expect(unexpected).toEqual([]);
  });

  test('no such program: the error names it', async () => {
    await expect(supervisor.start({ ...shell('gateway', ''), command: '/no/such/program' })).rejects.toThrow(
      /^gateway ended while starting: exit code 127; .*\/no\/such\/program: not found$/,
    );
  });

  test('no such folder to start in: the error names the program', async () => {
    await expect(supervisor.start({ ...shell('gateway', ''), cwd: '/no/such/folder' })).rejects.toThrow(
      'gateway could not be started: not started; spawn /bin/sh ENOENT',
    );
  });

  test('cannot be recorded: it never begins', async () => {
    const unable = new Supervisor({
      stateDir,
      record: () => Promise.reject(new Error('disk full')),
      onUnexpectedExit: ({ name }, exit) => unexpected.push([name, exit]),
    });
    await expect(unable.start(shell('gateway', obedient))).rejects.toThrow('gateway could not be started: disk full');
    await waitFor(() => unable.running.length === 0, { what: 'the process is gone' });
    expect(existsSync(join(stateDir, 'gateway.ready'))).toBe(false);
    expect(unexpected).toEqual([]);
  });

  test('recorded: only then it begins, as the very process that was recorded', async () => {
    const commands: (string | undefined)[] = [];
    const watching = new Supervisor({
      stateDir,
      record: async ([first]) => {
        if (first !== undefined) commands.push(argumentsOf(first.process.pid)[2]);
      },
      onUnexpectedExit: () => {},
    });
    const script = `echo $$; ${obedient}`;
    const started = await watching.start(shell('gateway', script));
    expect(commands).toEqual([expect.stringMatching(/^read -r _ /)]);
    expect(argumentsOf(started.process.pid)[2]).toBe(script);
    expect(await readFile(started.logFile, 'utf8')).toBe(`${started.process.pid}\n`);
    await watching.stopAll();
  });
});

describe('end', () => {
  test('by itself: reported once with its last words, and not started again', async () => {
    const started = await supervisor.start(shell('gateway', `echo hello; ${obedient}`));
    process.kill(started.process.pid, 'SIGKILL');
    const exit = await started.exited;
    await waitFor(() => unexpected.length > 0, { what: 'its end is reported' });
    expect(exit).toEqual({ code: null, signal: 'SIGKILL', lastLogLines: ['hello'] });
    expect(unexpected).toEqual([['gateway', exit]]);
    await waitFor(() => recorded.length === 2, { what: 'its end is recorded' });
    expect(recorded).toEqual([['gateway'], []]);
    expect(supervisor.running).toEqual([]);
  });

  test('stopAll: the last started first, nothing unexpected', async () => {
    for (const name of ['stub', 'gateway', 'scheduler']) {
      const program = shell(name, obedient);
      await supervisor.start({ ...program, args: [...program.args, name] });
    }
    await supervisor.stopAll();
    expect(await readFile(join(stateDir, 'order'), 'utf8')).toBe('scheduler\ngateway\nstub\n');
    expect(recorded.slice(3)).toEqual([['stub', 'gateway'], ['stub'], []]);
    expect(unexpected).toEqual([]);
  });

  test('stopAll, deaf to SIGTERM: killed with its children after the grace', async () => {
    const deaf = `trap '' TERM; sleep 60 & echo $!; : > "$READY"; while :; do sleep 0.05; done`;
    const started = await supervisor.start(shell('gateway', deaf));
    const grandchild = identifyProcess(Number(await readFile(started.logFile, 'utf8')));
    if (grandchild === undefined) throw new Error('the grandchild does not run');
    const said: string[] = [];
    await supervisor.stopAll({ graceMs: 100, log: (line) => said.push(line) });
    expect(await started.exited).toMatchObject({ signal: 'SIGKILL' });
    expect(said).toEqual(['gateway: did not stop within 100 ms, killed']);
    await waitFor(() => !isRunning(grandchild), { what: 'the grandchild is gone' });
  });
});

describe('orphans of an earlier up', () => {
  test('pid and start time match: ended, the last started first', async () => {
    const orphans = [];
    for (const name of ['stub', 'gateway']) {
      const program = shell(name, obedient);
      orphans.push(await supervisor.start({ ...program, args: [...program.args, name] }));
    }
    const said: string[] = [];
    await endOrphans(orphans, { log: (line) => said.push(line) });
    expect(orphans.map(({ process }) => isRunning(process))).toEqual([false, false]);
    expect(await readFile(join(stateDir, 'order'), 'utf8')).toBe('gateway\nstub\n');
    expect(said[0]).toBe(`gateway: ending process ${orphans[1]?.process.pid}, left behind by an earlier start`);
  });

  test('pid given to another program since: left alone', async () => {
    const bystander = await supervisor.start(shell('bystander', obedient));
    const former = { ...bystander.process, start_ticks: '1' };
    await endOrphans([{ name: 'gateway', process: former }]);
    await endProcess({ name: 'gateway', process: former });
    expect(isRunning(bystander.process)).toBe(true);
  });
});
