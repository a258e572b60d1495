import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdir, mkdtemp, realpath, rm } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { text } from 'node:stream/consumers';
import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { removePostgres } from '../../src/up/postgres/remove-postgres.ts';
import { chooseServiceUser } from '../../src/up/postgres/service-user.ts';
import { UpReport } from '../e2e/support/local-fleet.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Of the acceptance, on two cores that have nothing else to do. */
const READY_SECONDS = 60;
const BOUND_MS = 600_000;

interface User {
  readonly uid: number;
  readonly gid: number;
}

const user = await chooseServiceUser();

describe('a clean clone: npm ci and npm start', () => {
  test.runIf(user !== undefined)(
    'root, in a folder that is closed to everybody else: a fleet',
    { timeout: BOUND_MS },
    async () => {
      await using home = await homeFolder('/root', undefined);
      await expectFleet(home.path, undefined);
    },
  );

  test('an ordinary user, in a home: a fleet', { timeout: BOUND_MS }, async () => {
    await using home = await homeFolder('/tmp', user);
    await expectFleet(home.path, user);
  });
});

/** Clones what is committed, installs and starts it, and looks at the last line. */
async function expectFleet(home: string, as: User | undefined): Promise<void> {
  const clone = join(home, 'pushleft-fleet');
  await run('git', ['-c', 'safe.directory=*', 'clone', '-q', '--no-hardlinks', ROOT, clone], {
    home,
    cwd: home,
    as: undefined,
  });
  if (as !== undefined) await run('chown', ['-R', `${as.uid}:${as.gid}`, home], { home, cwd: home, as: undefined });
  await run('npm', ['ci', '--no-audit', '--no-fund'], { home, cwd: clone, as });
  const output = await run('npm', ['start', '--', '--exit-when-ready'], { home, cwd: clone, as });
  const report = v.parse(UpReport, JSON.parse(output.trimEnd().split('\n').at(-1) ?? ''));
  process.stdout.write(
    `clean clone as ${as === undefined ? 'this user' : `uid ${as.uid}`}: ${JSON.stringify(report)}\n`,
  );
  expect(report).toMatchObject({ nodes_enrolled: 3, jobs_completed: 3 });
  expect(report.seconds).toBeLessThan(READY_SECONDS);
}

async function homeFolder(parent: string, owner: User | undefined): Promise<{ path: string } & AsyncDisposable> {
  const path = await realpath(await mkdtemp(join(parent, 'pushleft-clean-')));
  if (owner !== undefined) await chown(path, owner.uid, owner.gid);
  return {
    path,
    async [Symbol.asyncDispose]() {
      const stateDir = join(path, 'pushleft-fleet', '.pushleft');
      await mkdir(stateDir, { recursive: true });
      await removePostgres(stateDir);
      await rm(path, { recursive: true, force: true });
    },
  };
}

/** Runs a program as on a fresh machine: the system's own Node, no variables but HOME and PATH. Throws with what it said when it fails. */
async function run(
  command: string,
  args: readonly string[],
  { home, cwd, as }: { home: string; cwd: string; as: User | undefined },
): Promise<string> {
  const path = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => !folder.includes('node_modules'));
  const child = spawn(command, args, {
    cwd,
    env: { HOME: home, PATH: path.join(delimiter) },
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(as === undefined ? {} : { uid: as.uid, gid: as.gid }),
  });
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${code}: ${stdout}${stderr}`);
  return stdout;
}
