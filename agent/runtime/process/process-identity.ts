import { readdirSync, readFileSync } from 'node:fs';
import * as v from 'valibot';

/**
 * What makes a process itself, as opposed to a later one with the same pid: pid, start time in clock ticks since boot (field 22 of
 * /proc/PID/stat, proc(5)) and the boot it lived in. Nothing is ever signalled where one of the three differs. Snake case, because it is
 * kept in files.
 */
export const ProcessIdentity = v.strictObject({
  pid: v.pipe(v.number(), v.integer(), v.minValue(2)),
  start_ticks: v.pipe(v.string(), v.regex(/^\d{1,20}$/)),
  boot_id: v.pipe(v.string(), v.maxLength(64)),
});
/** What makes a process itself. */
export type ProcessIdentity = v.InferOutput<typeof ProcessIdentity>;

/** Who runs under this pid; undefined for nobody, and for the dead whose parent has not asked for their end yet. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  return processEntry(pid)?.identity;
}

/** Whether exactly this process still runs. */
export function isRunning(identity: ProcessIdentity): boolean {
  const current = identifyProcess(identity.pid);
  return current?.start_ticks === identity.start_ticks && current.boot_id === identity.boot_id;
}

/** One process of a workload, and the group it is in. */
export interface Member extends ProcessIdentity {
  readonly group: number;
}

/**
 * The running processes of a workload: the group of its leader while that runs, and all, whatever group they moved to, that were started with
 * this HOME, a folder that is one workload's alone. Children that change both are not found.
 */
export function findMembers(leader: ProcessIdentity | null, home: string): Member[] {
  const group = leader !== null && isRunning(leader) ? leader.pid : undefined;
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => {
      const entry = processEntry(Number(name));
      const isMember = entry !== undefined && (entry.group === group || hasHome(entry.identity.pid, home));
      return isMember ? [{ ...entry.identity, group: entry.group }] : [];
    });
}

/** Sends a signal to this very process, and to nobody when it no longer runs. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (isRunning(identity)) sendTo(identity.pid, signal);
}

/** Sends a signal to the group that this very process leads, and to nobody when it no longer runs. */
export function signalGroup(leader: ProcessIdentity, signal: NodeJS.Signals): void {
  if (isRunning(leader)) sendTo(-leader.pid, signal);
}

function sendTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error;
  }
}

function processEntry(pid: number): { readonly group: number; readonly identity: ProcessIdentity } | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  // The second field is the program's name in parentheses and may hold spaces and parentheses itself.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, group, startTicks] = [fields?.[0], fields?.[2], fields?.[19]];
  if (state === undefined || state === 'Z' || state === 'X' || startTicks === undefined) return undefined;
  const bootId = readProc('/proc/sys/kernel/random/boot_id')?.trim() ?? 'unknown';
  return { group: Number(group), identity: { pid, start_ticks: startTicks, boot_id: bootId } };
}

function hasHome(pid: number, home: string): boolean {
  return readProc(`/proc/${pid}/environ`)?.split('\0').includes(`HOME=${home}`) ?? false;
}

/** Undefined when the process is gone, between open and read too (ESRCH), or another user's (EACCES). */
function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'ENOENT' || code === 'ESRCH' || code === 'EACCES') return undefined;
    throw error;
  }
}
