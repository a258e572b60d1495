import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import { writePrivateFile } from './private-files.ts';

/** Who an environment is for. `operator` is what CLI commands take when a variable is not set, `owner` what migrations and rebuilds take. */
export type Audience = 'operator' | 'owner' | 'gateway' | 'scheduler' | 'hetzner-stub';

/**
 * Writes STATE_DIR/env/<audience>.env (0600): the variables of one program, secrets included, which therefore never stand
 * in a process's arguments or in up.json. Node's --env-file and a shell's `set -a; .` read it alike. Refuses a value that
 * no quoting carries through both, and never shows it.
 */
export async function writeEnvironmentFile(
  stateDir: string,
  audience: Audience,
  variables: Readonly<Record<string, string>>,
): Promise<string> {
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${quote(name, value)}\n`);
  const path = environmentFile(stateDir, audience);
  await writePrivateFile(path, lines.join(''));
  return path;
}

/** The variables of one program; undefined when `up` has not written them. Refuses a file that others can read. */
export async function readEnvironmentFile(
  stateDir: string,
  audience: Audience,
): Promise<Record<string, string> | undefined> {
  const path = environmentFile(stateDir, audience);
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return undefined;
  if ((found.mode & 0o077) !== 0)
    throw new Error(`${path} holds secrets and is open to others; run: chmod 600 ${path}`);
  const variables = Object.entries(parseEnv(await readFile(path, 'utf8')));
  return Object.fromEntries(variables.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])));
}

function environmentFile(stateDir: string, audience: Audience): string {
  return join(stateDir, 'env', `${audience}.env`);
}

/** Single quotes carry everything but themselves; a path with an apostrophe goes into double quotes. */
function quote(name: string, value: string): string {
  if (/^[^'\n\r\0]*$/.test(value)) return `'${value}'`;
  if (/^[^"$`\\\n\r\0]*$/.test(value)) return `"${value}"`;
  throw new Error(`the value of ${name} has a line break, or quotes of two kinds, and cannot be kept in a file`);
}
