import { type ChildProcess, spawn } from 'node:child_process';
import { type FileHandle, open, readFile, rename, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, DatabaseError } from 'pg';
import { identifyProcess, isRunning, type ProcessIdentity, signalProcess, waitUntilGone } from '../process-identity.ts';
import type { ClusterInput } from './cluster.ts';
import { shutDown } from './orphan.ts';
import { writeRecord } from './places.ts';
import { credentials, programEnvironment } from './run-program.ts';
import { serverArguments } from './settings.ts';

/** As pg_ctl names them, less `smart`, which waits for clients without bound. */
export type StopMode = 'fast' | 'immediate';

export interface ServerExit {
  code: number | null;
  signal: NodeJS.Signals | null;
  lastLogLines: string[];
}

export interface ServerProcess {
  process: ProcessIdentity;
  exited: Promise<ServerExit>;
  stop(mode?: StopMode): Promise<void>;
}

/** A server that writes its log (crash recovery reports every 10 s) is alive, however slow: only silence is bounded. */
const SILENT_START_MS = 120_000;
/** Backends of a killed server hold its shared memory until they have noticed; new starts are refused until then. */
const SHARED_MEMORY_RELEASE_MS = 30_000;
const PROGRESS_INTERVAL_MS = 5_000;
const LARGEST_KEPT_LOG_BYTES = 16 * 1024 * 1024;

interface LaunchInput extends ClusterInput {
  superuserUrl: string;
}

/** Starts the server process and answers when it accepts connections. */
export async function launchServer(input: LaunchInput): Promise<ServerProcess> {
  const giveUpAt = performance.now() + SHARED_MEMORY_RELEASE_MS;
  for (;;) {
    const server = await spawnServer(input);
    try {
      await waitUntilReady(server, input);
      return server;
    } catch (error) {
      await shutDown(server.process, 5_000);
      const { lastLogLines } = await server.exited;
      const heldByDyingBackends = lastLogLines.some((line) => line.includes('pre-existing shared memory block'));
      if (!heldByDyingBackends || performance.now() >= giveUpAt) throw error;
      await delay(200);
    }
  }
}

/**
 * The server leads a session of its own: Ctrl-C at the terminal reaches `up` alone, which stops what uses the database
 * first.
 */
async function spawnServer({
  places,
  software,
  user,
  durable,
  dynamicSharedMemory,
}: LaunchInput): Promise<ServerProcess> {
  const logFile = await openLog(places.logFile);
  const logStart = (await logFile.stat()).size;
  const child = spawn(
    join(software.root, 'bin/postgres'),
    ['-D', places.dataDir, ...serverArguments({ socketDir: places.socketDir, durable, dynamicSharedMemory })],
    {
      cwd: '/',
      detached: true,
      stdio: ['ignore', logFile.fd, logFile.fd],
      env: programEnvironment(),
      ...credentials(user),
    },
  );
  const identity = child.pid === undefined ? undefined : identifyProcess(child.pid);
  const exited = exitOf(child, places.logFile, logStart);
  await logFile.close();
  if (identity === undefined) {
    const { lastLogLines } = await exited;
    throw new Error(`PostgreSQL could not be started: ${lastLogLines.join('; ')}`);
  }
  await writeRecord(places, identity);
  const endWithUs = () => signalProcess(identity, 'SIGINT');
  process.once('exit', endWithUs);
  const settled = exited.finally(() => process.removeListener('exit', endWithUs));
  return {
    process: identity,
    exited: settled,
    async stop(mode = 'fast') {
      await stopServer(identity, mode);
      await settled;
    },
  };
}

async function stopServer(identity: ProcessIdentity, mode: StopMode): Promise<void> {
  if (mode === 'immediate' && signalProcess(identity, 'SIGQUIT') && (await waitUntilGone(identity, 10_000))) return;
  await shutDown(identity);
}

async function openLog(path: string): Promise<FileHandle> {
  const size = await stat(path).then(
    (found) => found.size,
    () => 0,
  );
  if (size > LARGEST_KEPT_LOG_BYTES) await rename(path, `${path}.1`);
  return open(path, 'a', 0o600);
}

/** Listens at once, so that an exit in the very first moment is not missed. */
function exitOf(child: ChildProcess, logFile: string, logStart: number): Promise<ServerExit> {
  const { promise, resolve } = Promise.withResolvers<ServerExit>();
  child.once('error', (error) => resolve({ code: null, signal: null, lastLogLines: [error.message] }));
  child.once('exit', (code, signal) => {
    lastLines(logFile, logStart).then(
      (lastLogLines) => resolve({ code, signal, lastLogLines }),
      () => resolve({ code, signal, lastLogLines: [] }),
    );
  });
  return promise;
}

/** The last ten lines that the log holds beyond byte `from`. */
async function lastLines(path: string, from: number): Promise<string[]> {
  const content = await readFile(path).catch(() => Buffer.alloc(0));
  const text = content
    .subarray(Math.max(from, content.length - 16_384))
    .toString('utf8')
    .trimEnd();
  return text === '' ? [] : text.split('\n').slice(-10);
}

async function waitUntilReady(server: ServerProcess, { places, superuserUrl, log }: LaunchInput): Promise<void> {
  const startedAt = performance.now();
  let [quietSince, saidAt, logSize] = [startedAt, startedAt, -1];
  while (!(await acceptsConnections(places.dataDir, superuserUrl))) {
    if (!isRunning(server.process)) {
      throw new Error(`PostgreSQL ended while starting: ${describeExit(await server.exited)}`);
    }
    const now = performance.now();
    const { size } = await stat(places.logFile);
    if (size !== logSize) [quietSince, logSize] = [now, size];
    if (now - quietSince > SILENT_START_MS) {
      throw new Error(
        `PostgreSQL accepts no connection ${Math.round((now - startedAt) / 1000)} s after its start: ${(await lastLines(places.logFile, 0)).join('; ')}`,
      );
    }
    if (now - saidAt > PROGRESS_INTERVAL_MS) {
      saidAt = now;
      log(`PostgreSQL: still starting (${Math.round((now - startedAt) / 1000)} s)`);
    }
    await delay(20);
  }
}

/** One plain line of how the server ended, for people. */
export function describeExit({ code, signal, lastLogLines }: ServerExit): string {
  return [signal === null ? `exit code ${code}` : `signal ${signal}`, ...lastLogLines].join('; ');
}

/** postmaster.pid says `ready` in its eighth line; asking there first spares the log a refused connection every 20 ms. */
async function acceptsConnections(dataDir: string, superuserUrl: string): Promise<boolean> {
  const lockFile = await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '');
  if (lockFile.split('\n')[7]?.trim() !== 'ready') return false;
  const client = new Client({ connectionString: superuserUrl });
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch (error) {
    // 57P03: it was ready and is starting up again. Anything else will not change by waiting.
    if (error instanceof DatabaseError && error.code === '57P03') return false;
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
}
