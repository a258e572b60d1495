import { randomBytes } from 'node:crypto';
import { chown, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory, writePrivateFile } from '../private-files.ts';
import { exists, type PostgresPlaces } from './places.ts';
import { runProgram, type ServiceUser } from './run-program.ts';
import type { PostgresSoftware } from './software.ts';

/** The database's owner; the programs of the fleet get roles of their own. */
export const SUPERUSER = 'pushleft';

/** initdb takes a second here; a slow disk may need a hundred times as long. */
const INITDB_DEADLINE_MS = 10 * 60_000;
const PROGRESS_INTERVAL_MS = 5_000;

export interface ClusterInput {
  places: PostgresPlaces;
  software: PostgresSoftware;
  user: ServiceUser | undefined;
  durable: boolean;
  dynamicSharedMemory: 'posix' | 'mmap';
  log: (line: string) => void;
}

/** Creates the data folder unless it is there, and answers the superuser's password. Refuses data of another major version. */
export async function ensureCluster(input: ClusterInput): Promise<string> {
  const { places, software } = input;
  const password = await ensurePassword(places.passwordFile);
  if (!(await exists(places.dataDir))) await createCluster(input, password);
  const dataVersion = (await readFile(join(places.dataDir, 'PG_VERSION'), 'utf8')).trim();
  const major = software.version.split('.')[0];
  if (dataVersion !== major) {
    throw new Error(
      `${places.dataDir} was written by PostgreSQL ${dataVersion}, installed is ${major}: install the older release, or move the folder away to begin anew`,
    );
  }
  return password;
}

async function ensurePassword(path: string): Promise<string> {
  if (!(await exists(path))) await writePrivateFile(path, randomBytes(24).toString('base64url'));
  return readFile(path, 'utf8');
}

/** initdb writes beside the final place; the rename at the end tells a whole cluster from one whose making was cut short. */
async function createCluster(
  { places, software, user, durable, dynamicSharedMemory, log }: ClusterInput,
  password: string,
) {
  const unfinished = `${places.dataDir}.unfinished`;
  const passwordCopy = join(places.home, 'initdb-password');
  await rm(unfinished, { recursive: true, force: true });
  // initdb wants a file its own user can read; the lasting one is closed to that user.
  await writePrivateFile(passwordCopy, password);
  if (user !== undefined) await chown(passwordCopy, user.uid, user.gid);
  const startedAt = performance.now();
  const progress = setInterval(() => {
    log(`PostgreSQL: still creating the database files (${Math.round((performance.now() - startedAt) / 1000)} s)`);
  }, PROGRESS_INTERVAL_MS);
  try {
    const outcome = await runProgram(
      join(software.root, 'bin/initdb'),
      [
        `--pgdata=${unfinished}`,
        `--username=${SUPERUSER}`,
        `--pwfile=${passwordCopy}`,
        '--auth=scram-sha-256',
        '--encoding=UTF8',
        // The built-in provider orders and folds alike on every machine, whatever locales are installed.
        '--locale=C',
        '--locale-provider=builtin',
        '--builtin-locale=C.UTF-8',
        `--set=dynamic_shared_memory_type=${dynamicSharedMemory}`,
        '--no-instructions',
        ...(durable ? [] : ['--no-sync']),
      ],
      { user, deadlineMs: INITDB_DEADLINE_MS },
    );
    if (outcome.status !== 0)
      throw new Error(`initdb failed (${outcome.status}): ${outcome.output.split('\n').slice(-5).join('; ')}`);
  } finally {
    clearInterval(progress);
    await rm(passwordCopy, { force: true });
  }
  await rename(unfinished, places.dataDir);
  await syncDirectory(places.home);
}
