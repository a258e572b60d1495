import { lstat, mkdir, realpath } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { ensurePrivateDirectory } from './private-files.ts';

/** What chooses the state directory, strongest first: the flag, the environment, the folder one stands in. */
export interface StateDirectoryChoice {
  /** `--state-dir` */
  flag?: string | undefined;
  /** Read for PUSHLEFT_STATE_DIR. */
  env: NodeJS.ProcessEnv;
  cwd: string;
}

const DEFAULT_NAME = '.pushleft';

/**
 * Where `up` keeps its state: `.pushleft` in the folder it is started in unless chosen otherwise. It does not search
 * upwards, so that a checkout inside another one has a fleet of its own.
 */
export function chooseStateDirectory(choice: StateDirectoryChoice): string {
  return explicitChoice(choice) ?? resolve(choice.cwd, DEFAULT_NAME);
}

/**
 * The state directory a CLI command means: the chosen one, or the nearest `.pushleft` from the folder one stands in
 * upwards. Undefined when there is none. Throws where the nearest belongs to another user: it names the database that
 * commands and credentials are sent to, so only `--state-dir` may trust it (git's safe.directory has the same reason).
 */
export async function findStateDirectory(choice: StateDirectoryChoice): Promise<string | undefined> {
  const explicit = explicitChoice(choice);
  if (explicit !== undefined) return explicit;
  for (let folder = resolve(choice.cwd); ; folder = dirname(folder)) {
    const candidate = join(folder, DEFAULT_NAME);
    const found = await lstat(candidate).catch(() => undefined);
    if (found?.isDirectory()) {
      if (found.uid !== process.getuid?.()) {
        throw new Error(`${candidate} belongs to another user; where you trust it, say --state-dir ${candidate}`);
      }
      return candidate;
    }
    if (folder === dirname(folder)) return undefined;
  }
}

function explicitChoice({ flag, env, cwd }: StateDirectoryChoice): string | undefined {
  const chosen = flag ?? env['PUSHLEFT_STATE_DIR'];
  return chosen === undefined || chosen === '' ? undefined : resolve(cwd, chosen);
}

/**
 * What is wrong with a path for a state directory, in one line, or undefined. Paths below it stand in settings files, URLs and command
 * lines, which carry neither quotes nor line breaks all the way to a machine.
 */
export function stateDirectoryProblem(path: string): string | undefined {
  return /["'`\\\p{Cc}\u2028\u2029]/u.test(path)
    ? "the state directory's path has a quote, a backslash or a control character in it"
    : undefined;
}

/** Creates the state directory and its folders (all 0700), or checks those that exist; answers its real path. */
export async function prepareStateDirectory(path: string): Promise<string> {
  await mkdir(dirname(path), { recursive: true });
  await ensurePrivateDirectory(path);
  const stateDir = await realpath(path);
  for (const folder of ['logs', 'env', 'locks']) await ensurePrivateDirectory(join(stateDir, folder));
  return stateDir;
}
