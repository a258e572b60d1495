import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import * as v from 'valibot';
import { type Audience, readEnvironmentFile } from '../../../src/up/environment-files.ts';
import { recordedMachines } from '../../../src/up/machines.ts';
import { isRunning, ProcessIdentity } from '../../../src/up/process-identity.ts';
import { readUpRecord, type UpRecord } from '../../../src/up/up-record.ts';
import { waitFor } from '../../support/wait-for.ts';

const LAUNCHER = join(import.meta.dirname, '../../../cli/bin/pushleft-controller.js');
/** The machine may be busy with other tests: a fleet is ready in seconds, and given minutes. */
const READY_DEADLINE_MS = 100_000;

/** The last line of `up --exit-when-ready`. */
export const UpReport = v.strictObject({
  nodes_enrolled: v.number(),
  jobs_completed: v.number(),
  events: v.number(),
  seconds: v.number(),
});

/** A running `up`, and everything it has printed so far, both streams in the order of their arrival. */
export interface RunningUp extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly stateDir: string;
  readonly output: () => string;
  /** Resolves with the exit code, null after a signal. */
  readonly exited: Promise<number | null>;
  /** Resolves when nodes are there and commands work. */
  ready(): Promise<UpRecord>;
  record(): Promise<UpRecord>;
  /** The identity of one of its programs. */
  program(name: string): Promise<ProcessIdentity>;
  environment(audience: Audience): Promise<Record<string, string>>;
}

/** Starts `up` in a folder, with its state in `.pushleft` there, as an operator would. Nothing of the test's environment but PATH is handed on. */
export function startUp(
  folder: string,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): RunningUp {
  const stateDir = join(folder, '.pushleft');
  const child = spawn(process.execPath, [LAUNCHER, 'up', '--any-ports', ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HOME: folder, PUSHLEFT_OPERATOR: 'tester@test', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      output += chunk;
    });
  }
  const exited = once(child, 'close').then(([code]: (number | null)[]) => code ?? null);
  const record = async () => {
    const found = await readUpRecord(stateDir);
    if (found === undefined) throw new Error('there is no up.json');
    return found;
  };
  const up: RunningUp = {
    child,
    stateDir,
    output: () => output,
    exited,
    record,
    async ready() {
      const settled = () => child.exitCode !== null || output.includes('ready after');
      await waitFor(settled, { what: 'the fleet is ready', deadlineMs: READY_DEADLINE_MS, intervalMs: 50 }).catch(
        (error: unknown) => {
          throw new Error(`not ready: ${output}`, { cause: error });
        },
      );
      if (child.exitCode !== null) throw new Error(`up ended: ${output}`);
      return record();
    },
    async program(name) {
      const found = (await record()).processes.find((running) => running.name === name);
      if (found === undefined) throw new Error(`${name} does not run`);
      return found.process;
    },
    async environment(audience) {
      return (await readEnvironmentFile(stateDir, audience)) ?? {};
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await exited;
    },
  };
  return up;
}

/** Runs `up --exit-when-ready` to its end. Throws, with what it printed, unless its last line is a report. */
export async function runUp(folder: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
  const up = startUp(folder, ['--exit-when-ready', ...args], env);
  const code = await up.exited;
  const last = up.output().trimEnd().split('\n').at(-1) ?? '';
  const parsed = last.startsWith('{') ? v.safeParse(UpReport, JSON.parse(last)) : undefined;
  if (parsed?.success !== true) throw new Error(`no report, exit code ${code}: ${up.output()}`);
  return { code, report: parsed.output, output: up.output(), stateDir: up.stateDir };
}

/** The PostgreSQL server process of a state directory, the one started last. */
export async function readPostgresProcess(stateDir: string): Promise<ProcessIdentity> {
  const record: unknown = JSON.parse(await readFile(join(stateDir, 'postgres.json'), 'utf8'));
  return v.parse(v.object({ process: ProcessIdentity }), record).process;
}

/** Every process that has to do with a state directory: works in it, was told of it, or is its PostgreSQL. */
export async function processesOf(stateDir: string): Promise<string[]> {
  const postgres = await readPostgresProcess(stateDir);
  const machines = recordedMachines(stateDir).filter(({ process }) => isRunning(process));
  const others = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && belongs(pid, stateDir));
  return [
    ...(isRunning(postgres) ? ['PostgreSQL'] : []),
    ...machines.map(({ name }) => name),
    ...others.map((pid) => `${pid} ${commandLine(pid)}`),
  ];
}

function belongs(pid: string, stateDir: string): boolean {
  try {
    return readlinkSync(`/proc/${pid}/cwd`).startsWith(stateDir) || commandLine(pid).includes(stateDir);
  } catch {
    return false;
  }
}

function commandLine(pid: string): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
}

/** Collects the command lines of all processes of this machine, many times a second, until stopped. */
export function sampleCommandLines(): { stop(): string } {
  const seen = new Set<string>();
  const sample = () => {
    for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
      try {
        seen.add(commandLine(pid));
      } catch {
        // It has ended since.
      }
    }
  };
  const timer = setInterval(sample, 25);
  return {
    stop() {
      sample();
      clearInterval(timer);
      return [...seen].join('\n');
    },
  };
}
