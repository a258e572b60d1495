import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as v from 'valibot';

/** The user a program is started as; undefined means the one we run as ourselves. */
export interface ServiceUser {
  uid: number;
  gid: number;
  name: string;
}

export interface ProgramOutcome {
  /** Exit code, the signal's name, or the errno with which it could not be started. */
  status: number | string;
  /** The last 8 KiB of stdout and stderr together. */
  output: string;
}

/** Runs a program to its end, as the service user and with an environment of its own. Never throws. */
export async function runProgram(
  program: string,
  args: string[],
  { user, deadlineMs }: { user: ServiceUser | undefined; deadlineMs: number },
): Promise<ProgramOutcome> {
  try {
    const { stdout, stderr } = await promisify(execFile)(program, args, {
      cwd: '/',
      env: programEnvironment(),
      timeout: deadlineMs,
      killSignal: 'SIGKILL',
      ...credentials(user),
    });
    return { status: 0, output: lastPart(stdout + stderr) };
  } catch (error) {
    const failure = v.parse(ExecFailure, error);
    const output = `${failure.stdout ?? ''}${failure.stderr ?? ''}`;
    return { status: failure.code ?? failure.signal ?? 'unknown', output: lastPart(output || failure.message) };
  }
}

/** What execFile throws: `code` is the exit code, or an errno when the program could not be started at all. */
const ExecFailure = v.object({
  message: v.string(),
  code: v.nullish(v.union([v.number(), v.string()])),
  signal: v.nullish(v.string()),
  stdout: v.optional(v.string()),
  stderr: v.optional(v.string()),
});

function lastPart(output: string): string {
  return output.slice(-8192).trim();
}

/** The options of child_process.spawn that make the child run as this user; libuv drops the supplementary groups too. */
export function credentials(user: ServiceUser | undefined): { uid: number; gid: number } | Record<string, never> {
  return user === undefined ? {} : { uid: user.uid, gid: user.gid };
}

/** Nothing of our own environment reaches PostgreSQL: no token, no PG* variable, messages always in English. */
export function programEnvironment(): NodeJS.ProcessEnv {
  return { PATH: '/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' };
}
