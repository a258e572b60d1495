import { isRunning, type ProcessIdentity, signalProcess, waitUntilGone } from './process-identity.ts';

export interface NamedProcess {
  name: string;
  process: ProcessIdentity;
}

export interface EndOptions {
  /** How long SIGTERM may take before SIGKILL follows. Default 15 s. */
  graceMs?: number;
  log?: (line: string) => void;
}

const KILL_DEADLINE_MS = 5_000;

/**
 * SIGTERM to the process, and after the grace SIGKILL to the whole group it leads. Nothing is signalled unless pid and
 * start time match. Throws when even SIGKILL leaves it running.
 */
export async function endProcess(
  { name, process }: NamedProcess,
  { graceMs = 15_000, log = () => {} }: EndOptions = {},
): Promise<void> {
  if (!signalProcess(process, 'SIGTERM') || (await waitUntilGone(process, graceMs))) return;
  log(`${name}: did not stop within ${graceMs} ms, killed`);
  signalProcess(process, 'SIGKILL', { group: true });
  if (!(await waitUntilGone(process, KILL_DEADLINE_MS)))
    throw new Error(`${name} (process ${process.pid}) cannot be ended`);
}

/** Ends what an earlier `up`, killed with -9, left running; the last started first. */
export async function endOrphans(recorded: readonly NamedProcess[], options: EndOptions = {}): Promise<void> {
  for (const orphan of recorded.toReversed()) {
    if (!isRunning(orphan.process)) continue;
    options.log?.(`${orphan.name}: ending process ${orphan.process.pid}, left behind by an earlier start`);
    await endProcess(orphan, options);
  }
}
