import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { describeExit, lastLogLines, type ProcessExit } from '../log-file.ts';
import { isRunning, type ProcessIdentity, signalProcess, waitUntilGone } from '../process-identity.ts';
import { spawnLogged } from '../spawn-logged.ts';
import type { ClusterInput } from './cluster.ts';
import { shutDown } from './orphan.ts';
import { writeRecord } from './places.ts';
import { credentials, programEnvironment } from './run-program.ts';
import { serverArguments } from './settings.ts';

/** As pg_ctl names them, less `smart`, which waits for clients without bound. */
export type StopMode = 'fast' | 'immediate';

export interface ServerProcess {
  process: ProcessIdentity;
  exited: Promise<ProcessExit>;
  stop(mode?: StopMode): Promise<void>;
}

/** A server that writes its log (crash recovery reports every 10 s) is alive, however slow: only silence is bounded. */
const SILENT_START_MS = 120_000;
/** Backends of a killed server hold its shared memory until they have noticed; new starts are refused until then. */
const SHARED_MEMORY_RELEASE_MS = 30_000;
const PROGRESS_INTERVAL_MS = 5_000;

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
      const exit = await server.exited;
      const heldByDyingBackends = exit.lastLogLines.some((line) => line.includes('pre-existing shared memory block'));
      if (!heldByDyingBackends || performance.now() >= giveUpAt) throw error;
      await delay(200);
    }
  }
}

async function spawnServer(input: LaunchInput): Promise<ServerProcess> {
  const { places, software, user } = input;
  const { process: identity, exited } = await spawnLogged({
    name: 'PostgreSQL',
    command: join(software.root, 'bin/postgres'),
    args: ['-D', places.dataDir, ...serverArguments({ ...input, socketDir: places.socketDir })],
    logFile: places.logFile,
    options: { cwd: '/', env: programEnvironment(), ...credentials(user) },
    record: (started) => writeRecord(places, started.process),
  });
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

async function waitUntilReady(server: ServerProcess, { places, superuserUrl, log }: LaunchInput): Promise<void> {
  const startedAt = performance.now();
  let [quietSince, saidAt, logSize] = [startedAt, startedAt, -1];
  while (!(await acceptsConnections(places.dataDir, superuserUrl))) {
    if (!isRunning(server.process)) {
      throw new Error(`PostgreSQL ended while starting: ${describeExit(await server.exited)}`);
    }
    const now = performance.now();
    const seconds = Math.round((now - startedAt) / 1000);
    const { size } = await stat(places.logFile);
    if (size !== logSize) [quietSince, logSize] = [now, size];
    if (now - quietSince > SILENT_START_MS) {
      const lines = await lastLogLines(places.logFile);
      throw new Error([`PostgreSQL accepts no connection ${seconds} s after its start`, ...lines].join('; '));
    }
    if (now - saidAt > PROGRESS_INTERVAL_MS) {
      saidAt = now;
      log(`PostgreSQL: still starting (${seconds} s)`);
    }
    await delay(20);
  }
}

/** It was ready and is starting again (57P03, cannot_connect_now) or ending; anything else will not change by waiting. */
const PASSING = new Set(['57P03', 'ECONNREFUSED', 'ECONNRESET', 'ENOENT']);

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
    if (error instanceof Error && 'code' in error && PASSING.has(String(error.code))) return false;
    throw error;
  } finally {
    await client.end().catch(() => {});
  }
}
