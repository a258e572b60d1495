import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const LAUNCHER = join(import.meta.dirname, '../../../cli/bin/pushleft-controller.js');

/** How a run of the CLI ended. */
export interface CliRun {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Where and with what the CLI runs. Nothing of the test's own environment but PATH is handed on. */
export interface CliOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly stdin?: string;
}

/** Starts the real CLI as a process of its own. */
export function startCli(args: readonly string[], { env = {}, cwd = tmpdir() }: Omit<CliOptions, 'stdin'> = {}) {
  return spawn(process.execPath, [LAUNCHER, ...args], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', HOME: tmpdir(), PUSHLEFT_OPERATOR: 'tester@test', ...env },
  });
}

/** Runs the real CLI to its end. */
export async function runCli(args: readonly string[], { stdin = '', ...options }: CliOptions = {}): Promise<CliRun> {
  const child = startCli(args, options);
  child.stdin.end(stdin);
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close') as Promise<[number | null]>,
  ]);
  return { code, stdout, stderr };
}

/** Output as lines without indentation, runs of blanks as two, so that a column's width does not matter. */
export function plainLines({ stdout }: CliRun): string[] {
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().replaceAll(/\s{2,}/g, '  '));
}
