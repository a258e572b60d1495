import { connect } from 'node:net';
import { Client } from 'undici';
import { JobFailed } from '../job-runner.ts';
import type { Time } from '../time.ts';
import type { Runtime, WorkloadSpec } from './runtime.ts';

/** Distance of two looks. */
const LOOK_MS = 100;
/** One look at a port or a path; one that hangs is not ready. */
const PROBE_TIMEOUT_MS = 2_000;
/** What does not listen has nothing to ask; it is taken for ready when it is still there after this. */
const SETTLED_MS = 1_000;

/** How a service shows that it is ready. */
export interface Readiness {
  readonly address: string;
  /** Null for one that does not listen. */
  readonly port: number | null;
  /** Null: listening is enough. */
  readonly path: string | null;
  readonly timeoutMs: number;
}

/**
 * Waits until a service is ready: it listens on its port and answers 2xx or 3xx at its path, or, where it does not listen, is still there
 * a second after its start. Throws JobFailed `not_ready` when it ends before or is not ready in time, and the signal's reason
 * when that is aborted.
 */
export async function awaitReady(
  runtime: Runtime,
  { id, command }: WorkloadSpec,
  readiness: Readiness,
  time: Time,
  signal: AbortSignal,
): Promise<void> {
  const startedMs = time.nowMs();
  for (;;) {
    const shows = await showsReady(readiness, time.nowMs() - startedMs, signal);
    // After the probe: whoever answered on the port of a workload that has ended is somebody else.
    const state = await runtime.look(id, signal);
    signal.throwIfAborted();
    if (state.kind === 'exited')
      throw new JobFailed('not_ready', `it ended before it was ready${because(state, command)}`);
    if (state.kind === 'absent') throw new JobFailed('not_ready', 'it was removed before it was ready');
    if (shows) return;
    if (time.nowMs() - startedMs >= readiness.timeoutMs) {
      throw new JobFailed('not_ready', `it was not ready within ${readiness.timeoutMs / 1_000} s`);
    }
    await time.pause(LOOK_MS, signal);
  }
}

/**
 * Waits until what runs once has ended with exit code 0. Throws JobFailed `work_failed` for another end, `not_ready` when it
 * has not ended in time, and the signal's reason when that is aborted.
 */
export async function awaitDone(
  runtime: Runtime,
  { id, command }: WorkloadSpec,
  timeoutMs: number,
  time: Time,
  signal: AbortSignal,
): Promise<void> {
  const startedMs = time.nowMs();
  for (;;) {
    const state = await runtime.look(id, signal);
    if (state.kind === 'exited') {
      if (state.code === 0) return;
      throw new JobFailed('work_failed', `it ended${because(state, command)}`);
    }
    if (state.kind === 'absent') throw new JobFailed('work_failed', 'it was removed before it had ended');
    signal.throwIfAborted();
    if (time.nowMs() - startedMs >= timeoutMs) {
      throw new JobFailed('not_ready', `it was not done within ${timeoutMs / 1_000} s`);
    }
    await time.pause(LOOK_MS, signal);
  }
}

/** What POSIX shells and Docker say with these two codes is worth saying in words. */
function because({ code }: { readonly code: number | null }, [program = '']: readonly string[]): string {
  if (code === null) return ', nobody saw how';
  if (code === 126 || code === 127) return ` with exit code ${code}: is ${program.slice(0, 128)} there, and a program?`;
  return ` with exit code ${code}`;
}

async function showsReady(
  { address, port, path }: Readiness,
  elapsedMs: number,
  signal: AbortSignal,
): Promise<boolean> {
  if (port === null) return elapsedMs >= SETTLED_MS;
  return path === null ? listens(address, port, signal) : answers(address, port, path, signal);
}

function listens(host: string, port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, signal, timeout: PROBE_TIMEOUT_MS });
    const end = (ready: boolean) => {
      socket.destroy();
      resolve(ready);
    };
    socket
      .once('connect', () => end(true))
      .once('timeout', () => end(false))
      .once('error', () => end(false));
  });
}

async function answers(host: string, port: number, path: string, signal: AbortSignal): Promise<boolean> {
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const client = new Client(origin, { connect: { timeout: PROBE_TIMEOUT_MS } });
  try {
    const within = AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]);
    const { statusCode } = await client.request({ method: 'GET', path, signal: within });
    return statusCode >= 200 && statusCode < 400;
  } catch {
    return false;
  } finally {
    await client.destroy();
  }
}
