import { createHash } from 'node:crypto';
import { chown, lstat, mkdir, mkdtemp, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { ensurePrivateDirectory, writePrivateFile } from '../private-files.ts';
import { ProcessIdentity } from '../process-identity.ts';
import type { ServiceUser } from './run-program.ts';

/** STATE_DIR/postgres.json: where this state's PostgreSQL lives and which process was started last. */
const Record = v.strictObject({
  version: v.literal(1),
  state_dir: v.string(),
  home: v.string(),
  socket_dir: v.string(),
  process: v.nullable(ProcessIdentity),
});
export type PostgresRecord = v.InferOutput<typeof Record>;

export interface PostgresPlaces {
  stateDir: string;
  /** Holds the data folder and, where its path is short enough, the socket folder. 0700, owned by the service user. */
  home: string;
  dataDir: string;
  socketDir: string;
  passwordFile: string;
  logFile: string;
}

/** In a home outside its state directory: the path of that one. */
export const BACKREFERENCE = 'state-directory';

/**
 * Root's data folders lie here: kept over a reboot, open to be passed through by every user, writable for root alone. Not /var/tmp:
 * systemd-tmpfiles removes what nobody has touched there for 30 days, file by file.
 */
export const SHARED_DIR = '/var/lib';

/** sun_path of unix(7) holds 108 bytes, one of them the final NUL. */
const LONGEST_SOCKET_PATH_BYTES = 107;

/**
 * Chooses and creates the folders. An ordinary user's lie in the state directory. The service user that root must start
 * PostgreSQL as cannot reach that one, nor any folder under /root: then they lie under `sharedDir`, at a name made of the
 * state directory's path. `record` is what an earlier start left.
 */
export async function preparePlaces(
  stateDir: string,
  user: ServiceUser | undefined,
  record: PostgresRecord | undefined,
  { sharedDir = SHARED_DIR, shortDir = '/tmp' } = {},
): Promise<PostgresPlaces> {
  const home = await prepareHome(stateDir, user, record, sharedDir);
  await ensurePrivateDirectory(join(stateDir, 'logs'));
  return placesOfRecord({
    state_dir: stateDir,
    home,
    socket_dir: await prepareSocketDirectory(join(home, 'socket'), user, record, shortDir),
  });
}

/** The places of a PostgreSQL that was started before; creates nothing. */
export function placesOfRecord(record: Pick<PostgresRecord, 'state_dir' | 'home' | 'socket_dir'>): PostgresPlaces {
  return {
    stateDir: record.state_dir,
    home: record.home,
    dataDir: join(record.home, 'data'),
    socketDir: record.socket_dir,
    passwordFile: join(record.state_dir, 'postgres-password'),
    logFile: join(record.state_dir, 'logs', 'postgres.log'),
  };
}

async function prepareHome(
  stateDir: string,
  user: ServiceUser | undefined,
  record: PostgresRecord | undefined,
  sharedDir: string,
): Promise<string> {
  if (user === undefined) {
    const home = join(stateDir, 'postgres');
    await ensurePrivateDirectory(home);
    return home;
  }
  if (
    record !== undefined &&
    record.state_dir !== stateDir &&
    (await exists(join(record.state_dir, 'postgres.json')))
  ) {
    throw new Error(
      `${stateDir} is a copy of ${record.state_dir}, whose database it would share; remove one of the two`,
    );
  }
  const hash = createHash('sha256').update(stateDir).digest('hex').slice(0, 16);
  const home = record?.home ?? join(sharedDir, `pushleft-${hash}`);
  await ensureServiceDirectory(home, user);
  // For people who wonder whose this is, and for removeAbandonedData.
  await writePrivateFile(join(home, BACKREFERENCE), stateDir);
  return home;
}

/** The socket's folder: below home, or a short one under /tmp where that path would be too long for a socket. */
async function prepareSocketDirectory(
  preferred: string,
  user: ServiceUser | undefined,
  record: PostgresRecord | undefined,
  shortDir: string,
): Promise<string> {
  if (Buffer.byteLength(socketPath(preferred)) <= LONGEST_SOCKET_PATH_BYTES) {
    await ensureServiceDirectory(preferred, user);
    return preferred;
  }
  if (record?.socket_dir.startsWith(join(shortDir, 'pushleft-')) && (await exists(record.socket_dir))) {
    await ensureServiceDirectory(record.socket_dir, user);
    return record.socket_dir;
  }
  const created = await mkdtemp(join(shortDir, 'pushleft-'));
  await ensureServiceDirectory(created, user);
  return created;
}

/** The port is a part of the socket's name and nothing else: nothing listens on it. */
export function socketPath(socketDir: string): string {
  return join(socketDir, '.s.PGSQL.5432');
}

/**
 * As ensurePrivateDirectory, owned by the service user. A folder owned by root is taken over: only root can have made it there, on a
 * start that was cut short.
 */
async function ensureServiceDirectory(path: string, user: ServiceUser | undefined): Promise<void> {
  if (user === undefined) return ensurePrivateDirectory(path);
  await mkdir(path, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const found = await lstat(path);
  if (found.isDirectory() && found.uid === 0) await chown(path, user.uid, user.gid);
  await ensurePrivateDirectory(path, user.uid);
}

/**
 * Data without a password belongs to a state directory that was deleted since and made anew: it is set aside, not deleted,
 * and replaces what was set aside before. Answers the new path, or undefined when there was nothing to do.
 */
export async function setAsideForeignData(places: PostgresPlaces): Promise<string | undefined> {
  if (!(await exists(places.dataDir)) || (await exists(places.passwordFile))) return undefined;
  const aside = `${places.dataDir}.of-deleted-state`;
  await rm(aside, { recursive: true, force: true });
  await rename(places.dataDir, aside);
  return aside;
}

/** Undefined when this state never had a PostgreSQL. Throws, naming the file, when it is damaged. */
export async function readRecord(stateDir: string): Promise<PostgresRecord | undefined> {
  const path = join(stateDir, 'postgres.json');
  try {
    return v.parse(Record, JSON.parse(await readFile(path, 'utf8')));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new Error(`${path} cannot be read`, { cause: error });
  }
}

/** Remembers the places and the process for the next start. */
export async function writeRecord(places: PostgresPlaces, process: ProcessIdentity | null): Promise<void> {
  const record: PostgresRecord = {
    version: 1,
    state_dir: places.stateDir,
    home: places.home,
    socket_dir: places.socketDir,
    process,
  };
  await writePrivateFile(join(places.stateDir, 'postgres.json'), `${JSON.stringify(record, null, 2)}\n`);
}

export async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}
