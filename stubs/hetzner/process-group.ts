import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { ProcessIdentity } from './state.ts';

const POLL_MS = 20;
const AFTER_KILL_MS = 2_000;
/** `starttime` is the 22nd field of /proc/PID/stat; the fields behind the command's closing bracket start at the third. */
const START_TIME_INDEX = 22 - 3;

/** Who has this pid now, or undefined when nobody has. */
export function identifyProcess(pid: number): ProcessIdentity | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const startTicks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[START_TIME_INDEX];
    return startTicks === undefined ? undefined : { pid, startTicks };
  } catch {
    return undefined;
  }
}

/** True while that very process is there, and not another one that got its pid. */
export const isSameProcess = ({ pid, startTicks }: ProcessIdentity): boolean =>
  identifyProcess(pid)?.startTicks === startTicks;

/**
 * Ends the whole group that the process leads: SIGTERM, and SIGKILL when something of it is left after `graceMs`.
 * A pid that has passed on to another process is left alone; a group outlives its leader, whose pid stays taken then.
 */
export async function endProcessGroup(leader: ProcessIdentity, graceMs: number): Promise<void> {
  if (identifyProcess(leader.pid) !== undefined && !isSameProcess(leader)) return;
  for (const [signal, waitMs] of [
    ['SIGTERM', graceMs],
    ['SIGKILL', AFTER_KILL_MS],
  ] as const) {
    if (!signalGroup(leader.pid, signal)) return;
    const deadline = performance.now() + waitMs;
    while (performance.now() < deadline) {
      if (!signalGroup(leader.pid, 0)) return;
      await delay(POLL_MS);
    }
  }
}

/** False when nobody of the group is left. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return false;
    throw error;
  }
}
