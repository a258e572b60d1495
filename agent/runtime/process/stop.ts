import type { Time } from '../../time.ts';
import {
  findMembers,
  isRunning,
  type Member,
  type ProcessIdentity,
  signalGroup,
  signalProcess,
} from './process-identity.ts';

/** Distance of two looks at whether a process is gone. */
const LOOK_MS = 50;
/** A process that SIGKILL has not ended by then waits for a device that does not answer. */
const KILL_DEADLINE_MS = 10_000;

/**
 * Ends a workload: SIGTERM to its group, SIGKILL after `graceMs`. Returns when nothing of it runs. Throws when something still runs a while
 * after the kill, or when the signal is aborted first.
 */
export async function stopWorkload(
  leader: ProcessIdentity | null,
  home: string,
  graceMs: number,
  time: Time,
  signal: AbortSignal,
): Promise<void> {
  signalAll(leader, findMembers(leader, home), 'SIGTERM');
  if (await isGone(leader, home, graceMs, time, signal)) return;
  const endMs = time.nowMs() + KILL_DEADLINE_MS;
  while (time.nowMs() < endMs) {
    // Again each time: a process that forks faster than it is looked at leaves children behind.
    signalAll(leader, findMembers(leader, home), 'SIGKILL');
    if (await isGone(leader, home, 4 * LOOK_MS, time, signal)) return;
  }
  throw new Error(`processes of ${home} are still there ${KILL_DEADLINE_MS} ms after SIGKILL`);
}

function signalAll(leader: ProcessIdentity | null, members: readonly Member[], name: 'SIGTERM' | 'SIGKILL'): void {
  const reached = leader !== null && isRunning(leader);
  if (reached) signalGroup(leader, name);
  for (const member of members) {
    // A second SIGTERM means "at once" to many programs.
    if (!(reached && name === 'SIGTERM' && member.group === leader.pid)) signalProcess(member, name);
  }
}

/** Waits until nothing of the workload runs, `deadlineMs` at most. Throws when the signal is aborted. */
async function isGone(
  leader: ProcessIdentity | null,
  home: string,
  deadlineMs: number,
  time: Time,
  signal: AbortSignal,
): Promise<boolean> {
  const endMs = time.nowMs() + deadlineMs;
  for (;;) {
    if (findMembers(leader, home).length === 0) return true;
    signal.throwIfAborted();
    if (time.nowMs() >= endMs) return false;
    await time.pause(LOOK_MS, signal);
  }
}
