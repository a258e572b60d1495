import { type SpawnOptions, spawn } from 'node:child_process';
import { describeExit, lastLogLines, openLogFile, type ProcessExit } from './log-file.ts';
import { identifyChild, type ProcessIdentity } from './process-identity.ts';

export interface LoggedProgram {
  name: string;
  command: string;
  args: string[];
  /** Gets stdout and stderr, appended (0600). */
  logFile: string;
  options: Pick<SpawnOptions, 'cwd' | 'uid' | 'gid'> & { env: NodeJS.ProcessEnv };
  /** Notes the process down for the next `up`; the program begins when this has been done. */
  record: (started: LoggedProcess) => Promise<void>;
}

export interface LoggedProcess {
  name: string;
  process: ProcessIdentity;
  logFile: string;
  /** Settles, never rejects, when the process has ended; the log lines are those of this run. */
  exited: Promise<ProcessExit>;
}

/**
 * The shell waits for a line before it becomes the program. Should we be killed before the process is recorded, the pipe
 * closes and the program never begins: nothing runs that the next `up` does not know of.
 */
const ONCE_RECORDED = 'read -r _ || exit 1; exec "$@" </dev/null';

/**
 * Starts a long-running program with its output in a log. It leads a session of its own, so that Ctrl-C at the terminal
 * reaches `up` alone, which then stops the users of a thing before the thing. Throws, by name, when it cannot be started;
 * a program that does not exist shows as exit code 127.
 */
export async function spawnLogged(program: LoggedProgram): Promise<LoggedProcess> {
  const { name, command, args, logFile, options, record } = program;
  const { file, startBytes } = await openLogFile(logFile);
  try {
    const child = spawn('/bin/sh', ['-c', ONCE_RECORDED, name, command, ...args], {
      ...options,
      detached: true,
      stdio: ['pipe', file.fd, file.fd],
    });
    const identity = identifyChild(child.pid);
    const { promise: exited, resolve } = Promise.withResolvers<ProcessExit>();
    const end = (code: number | null, signal: NodeJS.Signals | null, lines: string[]) =>
      resolve({ code, signal, lastLogLines: lines });
    child.once('error', (error) => end(null, null, [error.message]));
    child.once('exit', (code, signal) => {
      lastLogLines(logFile, startBytes).then(
        (lines) => end(code, signal, lines),
        () => end(code, signal, []),
      );
    });
    // EPIPE when it was ended before it began; `exited` tells.
    child.stdin?.on('error', () => {});
    if (identity === undefined) throw new Error(describeExit(await exited));
    const started = { name, process: identity, logFile, exited };
    try {
      await record(started);
      child.stdin?.end('\n');
    } catch (error) {
      child.stdin?.end();
      throw error;
    }
    return started;
  } catch (error) {
    // Some failures (EINVAL, EPERM) are thrown by spawn, the others (ENOENT, EACCES) come as an event.
    throw new Error(`${name} could not be started: ${error instanceof Error ? error.message : ''}`, { cause: error });
  } finally {
    await file.close();
  }
}
