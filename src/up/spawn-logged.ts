import { type SpawnOptions, spawn } from 'node:child_process';
import { describeExit, lastLogLines, openLogFile, type ProcessExit } from './log-file.ts';
import { identifyChild, type ProcessIdentity } from './process-identity.ts';

export interface LoggedProgram {
  /** For the error alone. */
  name: string;
  command: string;
  args: string[];
  /** Gets stdout and stderr, appended (0600). */
  logFile: string;
  options: Pick<SpawnOptions, 'cwd' | 'uid' | 'gid'> & { env: NodeJS.ProcessEnv };
}

export interface LoggedProcess {
  process: ProcessIdentity;
  /** Settles, never rejects, when the process has ended; the log lines are those of this run. */
  exited: Promise<ProcessExit>;
}

/**
 * Starts a long-running program with its output in a log. It leads a session of its own, so that Ctrl-C at the terminal
 * reaches `up` alone, which then stops the users of a thing before the thing. Throws, by name, when it cannot be started.
 */
export async function spawnLogged({ name, command, args, logFile, options }: LoggedProgram): Promise<LoggedProcess> {
  const { file, startBytes } = await openLogFile(logFile);
  const { promise: exited, resolve } = Promise.withResolvers<ProcessExit>();
  const end = (code: number | null, signal: NodeJS.Signals | null, lines: string[]) =>
    resolve({ code, signal, lastLogLines: lines });
  try {
    const child = spawn(command, args, { ...options, detached: true, stdio: ['ignore', file.fd, file.fd] });
    const identity = identifyChild(child.pid);
    child.once('error', (error) => end(null, null, [error.message]));
    child.once('exit', (code, signal) => {
      lastLogLines(logFile, startBytes).then(
        (lines) => end(code, signal, lines),
        () => end(code, signal, []),
      );
    });
    if (identity === undefined) throw new Error(describeExit(await exited));
    return { process: identity, exited };
  } catch (error) {
    // Some failures (EINVAL, EPERM) are thrown by spawn, the others (ENOENT, EACCES) come as an event.
    throw new Error(`${name} could not be started: ${error instanceof Error ? error.message : ''}`, { cause: error });
  } finally {
    await file.close();
  }
}
