import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import type { NamedProcess } from './end-process.ts';
import { isRunning, ProcessIdentity, signalProcess, waitUntilGone } from './process-identity.ts';

const KILL_DEADLINE_MS = 5_000;

/** Of the Hetzner stub's state file (stubs/hetzner/state.ts): the process groups that stand for servers. */
const RecordedServers = v.object({
  servers: v.array(v.object({ id: v.number(), name: v.string(), process: v.nullable(ProcessIdentity) })),
});

/** Where the stub's state lies, and its machines' folders. */
export function stubPlaces(stateDir: string): { readonly stateFile: string; readonly machinesDir: string } {
  return { stateFile: join(stateDir, 'hetzner-stub.json'), machinesDir: join(stateDir, 'machines') };
}

/** The log of the agent on a server of the stub, for people to look at. */
export function agentLog(machinesDir: string, serverId: number): string {
  return join(machinesDir, String(serverId), 'agent.log');
}

/** SIGKILL to all that still run, without waiting. */
export function killMachines(stateDir: string): readonly NamedProcess[] {
  const running = recordedMachines(stateDir).filter(({ process }) => isRunning(process));
  for (const { process } of running) signalProcess(process, 'SIGKILL', { group: true });
  return running;
}

/** Ends machines whose stub was killed: nothing controls them, and their settings are of an earlier start. The power fails, so to say. */
export async function endMachines(stateDir: string, log: (line: string) => void): Promise<void> {
  for (const { name, process } of killMachines(stateDir)) {
    log(`${name}: ending process ${process.pid}, left behind by an earlier start`);
    if (!(await waitUntilGone(process, KILL_DEADLINE_MS))) throw new Error(`${name} cannot be ended`);
  }
}

/** Processes that stand for machines, as the stub recorded them before they began. None where no stub ever ran. */
export function recordedMachines(stateDir: string): NamedProcess[] {
  const { stateFile } = stubPlaces(stateDir);
  let text: string;
  try {
    text = readFileSync(stateFile, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return [];
    throw error;
  }
  const recorded = v.safeParse(RecordedServers, JSON.parse(text));
  if (!recorded.success) throw new Error(`${stateFile} is not a state file of the Hetzner stub`);
  return recorded.output.servers.flatMap(({ name, process }) =>
    process === null ? [] : [{ name: `machine ${name}`, process }],
  );
}
