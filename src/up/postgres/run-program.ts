import { spawn } from 'node:child_process';
import type { ServiceUser } from './service-user.ts';

export interface ProgramOutcome {
  /** Exit code, the signal's name, or the errno with which it could not be started. */
  status: number | string;
  /** The last 8 KiB of stdout and stderr together. */
  output: string;
}

/** Runs one of PostgreSQL's programs to its end, as the service user and with an environment of its own. Never throws. */
export function runProgram(
  program: string,
  args: string[],
  { user, deadlineMs }: { user: ServiceUser | undefined; deadlineMs: number },
): Promise<ProgramOutcome> {
  return new Promise((resolve) => {
    let output = '';
    const child = spawn(program, args, {
      cwd: '/',
      env: programEnvironment(),
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: deadlineMs,
      killSignal: 'SIGKILL',
      ...credentials(user),
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-8192);
      });
    }
    child.once('error', (error: NodeJS.ErrnoException) =>
      resolve({ status: error.code ?? 'ERROR', output: error.message }),
    );
    child.once('close', (code, signal) => resolve({ status: code ?? signal ?? 'unknown', output: output.trim() }));
  });
}

/** The options of child_process.spawn that make the child run as this user; libuv drops the supplementary groups too. */
export function credentials(user: ServiceUser | undefined): { uid: number; gid: number } | Record<string, never> {
  return user === undefined ? {} : { uid: user.uid, gid: user.gid };
}

/** Nothing of our own environment reaches PostgreSQL: no token, no PG* variable, messages always in English. */
export function programEnvironment(): NodeJS.ProcessEnv {
  return { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}
