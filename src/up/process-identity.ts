import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import * as v from 'valibot';

/**
 * What makes a process itself, as opposed to a later one with the same pid: pid, start time in clock ticks since boot
 * (field 22 of /proc/PID/stat, proc(5)) and the boot it lived in. A signal is only ever sent where all three match.
 * Snake case, because it is kept in files.
 */
export const ProcessIdentity = v.strictObject({
  pid: v.pipe(v.number(), v.integer(), v.minValue(2)),
  start_ticks: v.pipe(v.string(), v.regex(/^\d{1,20}$/)),
  boot_id: v.pipe(v.string(), v.maxLength(64)),
});
export type ProcessIdentity = v.InferOutput<typeof ProcessIdentity>;

/** The identity of a running process; undefined when there is none with this pid or it is dead and only not yet reaped. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  const entry = processEntry(pid);
  return entry === undefined || entry.state === 'Z' || entry.state === 'X' ? undefined : entry.identity;
}

/**
 * The identity of a child just spawned, in the same turn as that: even one that ended at once still has its entry in /proc
 * until Node asks for its status. Undefined when it could not be spawned.
 */
export function identifyChild(pid: number | undefined): ProcessIdentity | undefined {
  return pid === undefined ? undefined : processEntry(pid)?.identity;
}

function processEntry(pid: number): { state: string; identity: ProcessIdentity } | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  // The second field is the program's name in parentheses and may hold spaces and parentheses itself.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields?.[0], fields?.[19]];
  if (state === undefined || startTicks === undefined) return undefined;
  const bootId = readProc('/proc/sys/kernel/random/boot_id')?.trim() ?? 'unknown';
  return { state, identity: { pid, start_ticks: startTicks, boot_id: bootId } };
}

/** Whether exactly this process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  const current = identifyProcess(identity.pid);
  return current?.start_ticks === identity.start_ticks && current.boot_id === identity.boot_id;
}

/** The arguments a process was started with; empty when it is gone or belongs to the kernel. */
export function argumentsOf(pid: number): string[] {
  return readProc(`/proc/${pid}/cmdline`)?.split('\0').slice(0, -1) ?? [];
}

/**
 * Sends the signal to this very process (or, with `group`, to the process group it leads). Answers false, and signals
 * nobody, when it no longer runs.
 */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals, { group = false } = {}): boolean {
  if (!isRunning(identity)) return false;
  try {
    return process.kill(group ? -identity.pid : identity.pid, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

/** Waits until the process is gone; false when it still runs after `deadlineMs`. */
export async function waitUntilGone(identity: ProcessIdentity, deadlineMs: number): Promise<boolean> {
  const deadline = performance.now() + deadlineMs;
  while (isRunning(identity)) {
    if (performance.now() >= deadline) return false;
    await delay(20);
  }
  return true;
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // ESRCH: the process went away between open and read.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) {
      return undefined;
    }
    throw error;
  }
}
