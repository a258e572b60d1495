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
/** In the middle of an exec a process has no environment for a moment and is not found; nobody is so twice. */
const LOOK_AGAIN_MS = 10;
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
  const look = () => findMembers(leader, home);
  const told = new Set<string>();
  if (leader !== null) signalGroup(leader, 'SIGTERM');
  const graceOver = time.nowMs() + graceMs;
  do {
    if (await isGone(look, time)) return;
    signal.throwIfAborted();
    terminateStragglers(leader, look(), told);
    await time.pause(Math.min(LOOK_MS, graceMs), signal);
  } while (time.nowMs() < graceOver);
  const endMs = time.nowMs() + KILL_DEADLINE_MS;
  while (time.nowMs() < endMs) {
    // Again each time: a process that forks faster than it is looked at leaves children behind.
    if (leader !== null) signalGroup(leader, 'SIGKILL');
    for (const member of look()) signalProcess(member, 'SIGKILL');
    if (await isGone(look, time)) return;
    signal.throwIfAborted();
    await time.pause(LOOK_MS, signal);
  }
  throw new Error(`processes of ${home} are still there ${KILL_DEADLINE_MS} ms after SIGKILL`);
}

/**
 * Tells members that the group's signal did not reach, once each: a second SIGTERM means "at once" to many programs. While the group has its
 * leader, its members may start helpers for their end, which are not to be told.
 */
function terminateStragglers(leader: ProcessIdentity | null, members: readonly Member[], told: Set<string>): void {
  const group = leader !== null && isRunning(leader) ? leader.pid : undefined;
  for (const member of members) {
    const name = `${member.pid} ${member.start_ticks}`;
    if (member.group === group || told.has(name)) continue;
    told.add(name);
    signalProcess(member, 'SIGTERM');
  }
}

async function isGone(look: () => readonly Member[], time: Time): Promise<boolean> {
  if (look().length > 0) return false;
  await time.pause(LOOK_AGAIN_MS);
  return look().length === 0;
}
