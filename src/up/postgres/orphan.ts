import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  argumentsOf,
  identifyProcess,
  isRunning,
  type ProcessIdentity,
  signalProcess,
  waitUntilGone,
} from '../process-identity.ts';
import type { PostgresPlaces, PostgresRecord } from './places.ts';

/** A fast shutdown writes a checkpoint, which a slow disk may take long over; then crash recovery is left to the next start. */
const FAST_SHUTDOWN_MS = 60_000;
const IMMEDIATE_SHUTDOWN_MS = 10_000;

/**
 * Ends a server that an earlier start left behind (its `up` was killed with -9), and clears a postmaster.pid that names a
 * process which is no PostgreSQL of ours: the server would take any living process with that pid for its rival.
 */
export async function endOrphan(
  places: PostgresPlaces,
  record: PostgresRecord | undefined,
  log: (line: string) => void,
): Promise<void> {
  const orphan = recordedServer(places, record) ?? (await servingData(places.dataDir));
  if (orphan !== undefined) {
    log(`PostgreSQL: ending process ${orphan.pid}, left behind by an earlier start`);
    await shutDown(orphan);
  }
  await rm(join(places.dataDir, 'postmaster.pid'), { force: true });
}

/** SIGINT (fast), then SIGQUIT (immediate), then SIGKILL, each with a bound. Throws when even that leaves it running. */
export async function shutDown(server: ProcessIdentity, fastMs = FAST_SHUTDOWN_MS): Promise<void> {
  for (const [signal, deadlineMs] of [
    ['SIGINT', fastMs],
    ['SIGQUIT', IMMEDIATE_SHUTDOWN_MS],
    ['SIGKILL', IMMEDIATE_SHUTDOWN_MS],
  ] as const) {
    if (!signalProcess(server, signal) || (await waitUntilGone(server, deadlineMs))) return;
  }
  throw new Error(`PostgreSQL (process ${server.pid}) cannot be ended`);
}

/** A record that was copied along with its state directory names the server of the original. */
function recordedServer(places: PostgresPlaces, record: PostgresRecord | undefined): ProcessIdentity | undefined {
  if (record?.process == null || record.home !== places.home) return undefined;
  return isRunning(record.process) ? record.process : undefined;
}

/** The server that holds this data folder, should it have been started without our having come to record it. */
async function servingData(dataDir: string): Promise<ProcessIdentity | undefined> {
  const lockFile = await readFile(join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '');
  const pid = Number(lockFile.split('\n')[0]);
  if (!Number.isSafeInteger(pid) || pid < 2) return undefined;
  const args = argumentsOf(pid);
  return args[args.indexOf('-D') + 1] === dataDir ? identifyProcess(pid) : undefined;
}
