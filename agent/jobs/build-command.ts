import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { JobFailed } from '../job-runner.ts';
import { identifyProcess } from '../runtime/process/process-identity.ts';
import { stopWorkload } from '../runtime/process/stop.ts';
import type { Time } from '../time.ts';

/** A build that was told to end has this long to do so before it is killed. */
const GRACE_MS = 3_000;
/** The end of what a build says is what tells why it failed. */
const OUTPUT_MAX_CHARS = 64 * 1024;

/** A command with its place. */
export interface BuildCommand {
  readonly command: readonly string[];
  readonly folder: string;
  /** Its HOME, by which its processes are known. */
  readonly home: string;
  /** Where it has to leave the artifact. */
  readonly artifact: string;
  readonly timeoutMs: number;
}

/** How a command ended, and the end of what it said. A code is absent when a signal ended it. */
export interface CommandEnd {
  readonly code: number | null;
  readonly output: string;
}

/**
 * Runs a build's command in a process group of its own. When the signal is aborted or the time is over, everything that it started is ended, and
 * the signal's reason thrown, or JobFailed `work_failed`.
 */
export async function runBuildCommand(build: BuildCommand, time: Time, signal: AbortSignal): Promise<CommandEnd> {
  const { command, folder, home, artifact, timeoutMs } = build;
  const [program = '', ...words] = command;
  const child = spawn(program, words, {
    cwd: folder,
    env: { PATH: process.env['PATH'], HOME: home, ARTIFACT: artifact },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // A command that cannot be started says so beside whoever waits for its end.
  child.on('error', () => undefined);
  let output = '';
  const keep = (chunk: Buffer) => {
    output = `${output}${chunk.toString()}`.slice(-OUTPUT_MAX_CHARS);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  const leader = child.pid === undefined ? undefined : identifyProcess(child.pid);
  const end = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  try {
    // Not 'close': a child that it left behind may hold its output open.
    const [code] = (await once(child, 'exit', { signal: end })) as [number | null];
    return { code, output };
  } catch (error) {
    signal.throwIfAborted();
    if (end.aborted) throw new JobFailed('work_failed', `the build was not done within ${timeoutMs / 1_000} s`);
    throw new JobFailed('work_failed', `the build's command could not be started: is ${program} there?`, {
      cause: error,
    });
  } finally {
    await stopWorkload(leader ?? null, home, GRACE_MS, time, new AbortController().signal);
  }
}
