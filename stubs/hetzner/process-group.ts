import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { identifyProcess, isRunning, type ProcessIdentity } from '../../src/up/process-identity.ts';

const POLL_MS = 25;
const AFTER_KILL_MS = 2_000;

/**
 * Ends the whole group that a process leads or led: SIGTERM, and SIGKILL when something of it is left after `graceMs`.
 * Nobody is signalled when the pid has passed on to another process or the machine has been restarted since. A group may
 * outlive its leader: the kernel gives the pid to nobody else as long as it does.
 */
export async function endProcessGroup(leader: ProcessIdentity, graceMs: number): Promise<void> {
  if (!isOurs(leader)) return;
  for (const [signal, waitMs] of [
    ['SIGTERM', graceMs],
    ['SIGKILL', AFTER_KILL_MS],
  ] as const) {
    if (!signalGroup(leader.pid, signal)) return;
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline) {
      if (!hasLiveMember(leader.pid)) return;
      await delay(POLL_MS);
    }
  }
}

function isOurs(leader: ProcessIdentity): boolean {
  if (isRunning(leader)) return true;
  return identifyProcess(leader.pid) === undefined && identifyProcess(process.pid)?.boot_id === leader.boot_id;
}

/** Sends the signal; false when nobody of the group is left. */
function signalGroup(groupId: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(-groupId, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}

/**
 * Whether somebody of the group still runs. The dead who wait for their parent do not count: signal 0 finds them, and in a
 * container whose first process reaps nobody they wait for ever.
 */
function hasLiveMember(groupId: number): boolean {
  return readdirSync('/proc').some((entry) => /^\d+$/.test(entry) && isLiveMember(entry, groupId));
}

function isLiveMember(pid: string, groupId: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const [state, , group] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return group === String(groupId) && state !== 'Z' && state !== 'X';
  } catch {
    return false;
  }
}
