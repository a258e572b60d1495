import { fileURLToPath } from 'node:url';
import * as v from 'valibot';
import { stubPlaces } from './machines.ts';
import type { ProgramStart } from './processes.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CONTROLLER = `${ROOT}cli/bin/pushleft-controller.js`;
const STUB = `${ROOT}stubs/hetzner/main.ts`;
const BOOT_AGENT = `${ROOT}stubs/hetzner/boot-agent.ts`;
/** A look at whether a program is ready may not take longer than this. */
const PROBE_MS = 2_000;

type Environment = Readonly<Record<string, string>>;

/** The gateway; ready when it has answered that the database answers. */
export function gatewayProgram(env: Environment, adminPort: number): ProgramStart {
  return {
    ...controller('gateway', env),
    ready: async () =>
      v.is(v.object({ status: v.literal('ok') }), await probe(`http://127.0.0.1:${adminPort}/healthz`)),
  };
}

/** The scheduler. It listens nowhere: `hasBeacon` says whether it has told the database that it runs. */
export function schedulerProgram(env: Environment, hasBeacon: () => Promise<boolean>): ProgramStart {
  return { ...controller('scheduler', env), ready: hasBeacon };
}

/** The stub of Hetzner's API, whose machines are agents. Its state and their folders outlive it. */
export function hetznerStubProgram(env: Environment, stateDir: string, port: number): ProgramStart {
  const { stateFile, machinesDir } = stubPlaces(stateDir);
  const bootCommand = `exec ${shellWord(process.execPath)} ${shellWord(BOOT_AGENT)}`;
  const options = [
    '--port',
    String(port),
    '--state',
    stateFile,
    '--boot-dir',
    machinesDir,
    '--boot-command',
    bootCommand,
  ];
  return {
    name: 'hetzner-stub',
    command: process.execPath,
    args: [STUB, ...options],
    env,
    ready: async () => (await probe(`http://127.0.0.1:${port}/_stub/state`)) !== undefined,
  };
}

/** Not through --state-dir: a program may be handed only what is its own. */
function controller(name: 'gateway' | 'scheduler', env: Environment): Omit<ProgramStart, 'ready'> {
  return { name, command: process.execPath, args: [CONTROLLER, name], env };
}

async function probe(url: string): Promise<unknown> {
  const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) });
  return response.ok ? response.json() : undefined;
}

/** A word that /bin/sh reads as it is. */
function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
