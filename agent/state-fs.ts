import { mkdir, open, readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises';

/**
 * The file operations that the agent's state is built from. Each writing one is a step after which the machine may die;
 * a test cuts an enrolment before and after every one of them.
 */
export interface StateFs {
  /** The file's text; undefined when there is none. */
  readText(path: string): Promise<string | undefined>;
  /** Names in a directory, sorted; empty when there is none. */
  list(path: string): Promise<readonly string[]>;
  /** A symbolic link's target; undefined when there is none. */
  readLink(path: string): Promise<string | undefined>;
  /** Makes a directory (0700) and its parents; nothing when it is there. */
  makeDir(path: string): Promise<void>;
  /** Creates a file (0600), which must not exist, writes it and forces it to disk. */
  writeSynced(path: string, text: string): Promise<void>;
  /** Renames over whatever is there. A directory only replaces an empty one: ENOTEMPTY. */
  rename(from: string, to: string): Promise<void>;
  makeLink(target: string, path: string): Promise<void>;
  /** Removes a file or a whole tree; nothing when there is none. */
  remove(path: string): Promise<void>;
  /** Forces a directory's entries to disk. */
  syncDir(path: string): Promise<void>;
}

/** The real file system. */
export const diskFs: StateFs = {
  readText: (path) => readFile(path, 'utf8').catch(absent),
  list: async (path) => ((await readdir(path).catch(absent)) ?? []).sort(),
  readLink: (path) => readlink(path).catch(absent),
  makeDir: async (path) => void (await mkdir(path, { recursive: true, mode: 0o700 })),
  writeSynced: async (path, text) => {
    await using file = await open(path, 'wx', 0o600);
    await file.writeFile(text);
    await file.sync();
  },
  rename,
  makeLink: (target, path) => symlink(target, path),
  remove: (path) => rm(path, { recursive: true, force: true }),
  syncDir: async (path) => {
    await using directory = await open(path, 'r');
    await directory.sync();
  },
};

/** Replaces a file's content so that a reader, or a machine that died, sees the old or the new one and nothing between. */
export async function replaceFile(fs: StateFs, directory: string, name: string, text: string): Promise<void> {
  const temporary = `${directory}/.${name}.${process.pid}.tmp`;
  await fs.remove(temporary);
  await fs.writeSynced(temporary, text);
  await fs.rename(temporary, `${directory}/${name}`);
  await fs.syncDir(directory);
}

/** Whether an error of the file system has this code. */
export function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && 'code' in error && error.code === code;
}

function absent(error: unknown): undefined {
  if (hasCode(error, 'ENOENT')) return undefined;
  throw error;
}
