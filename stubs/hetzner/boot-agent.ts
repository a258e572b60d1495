import { type ChildProcess, spawn } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { HOST_PATHS } from '../../src/hetzner/cloud-init/host-paths.ts';
import { readUserData } from '../../src/hetzner/cloud-init/read-user-data.ts';

/*
 * What the stub runs in place of a machine (--boot-command): does locally what the user-data's script does on a server, and then what
 * systemd does with the agent's unit. Everything lies under `root/` beside the user-data file, the agent's output in agent.log.
 */

/** Settings of local agents that `up` or a test may hand on through the stub's environment. */
const HANDED_ON = [
  'PUSHLEFT_RUNTIME',
  'PUSHLEFT_DOCKER_SOCKET',
  'PUSHLEFT_AGENT_LEASE_WAIT_SECONDS',
  'PUSHLEFT_AGENT_STOP_GRACE_SECONDS',
  'PUSHLEFT_AGENT_RENEW_CHECK_SECONDS',
] as const;
/**
 * What any program needs of its surroundings; tokens and passwords of the control plane are not among it. The two addresses override
 * those of the user-data: a local fleet may have had to move to other ports since.
 */
const SURROUNDINGS = [
  'PATH',
  'HOME',
  'LANG',
  'TZ',
  'TMPDIR',
  'NODE_COMPILE_CACHE',
  'PUSHLEFT_GATEWAY_URL',
  'PUSHLEFT_ENROLL_URL',
] as const;
/** The stub kills what is left 5 s after SIGTERM: by then a job has to be handed back. */
const STOP_GRACE_SECONDS = '3';
const RESTART_FIRST_MS = 1_000;
const RESTART_LONGEST_MS = 30_000;
/** An agent that ran this long was well: the next restart is quick again. */
const WELL_AFTER_MS = 60_000;
/** The group's SIGTERM reaches the agent by itself, and a second one ends it at once: passed on only when it was not heeded. */
const PASS_ON_AFTER_MS = 8_000;

/** A machine's disk: `state` is the agent's directory, `environmentFile` what it is started with. */
interface Disk {
  readonly directory: string;
  readonly environmentFile: string;
}

const onDisk = (directory: string, path: string): string => join(directory, 'root', path);

/** Writes the user-data's files, once in a machine's life as cloud-init does, and erases the user-data in any case. */
function materialise(userDataFile: string): Disk {
  const directory = dirname(userDataFile);
  const environmentFile = onDisk(directory, HOST_PATHS.environment);
  const booted = onDisk(directory, 'var/lib/cloud/boot-finished');
  if (!existsSync(booted)) {
    const { environment, files } = readUserData(readFileSync(userDataFile, 'utf8'));
    for (const [path, { mode, content }] of files) put(onDisk(directory, path), content, mode);
    put(environmentFile, environmentText(localEnvironment(environment, directory)), 0o644);
    mkdirSync(onDisk(directory, '/var/lib/pushleft/data'), { recursive: true, mode: 0o700 });
    put(booted, '', 0o644);
  }
  rmSync(userDataFile, { force: true });
  return { directory, environmentFile };
}

function put(path: string, content: string, mode: number): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  writeFileSync(path, content, { mode, flag: 'wx' });
}

/** The agent's environment with its paths moved below the machine's directory. */
function localEnvironment(environment: Readonly<Record<string, string>>, directory: string) {
  const handedOn = HANDED_ON.flatMap((name) => {
    const value = process.env[name];
    return value === undefined || value === '' ? [] : [[name, value] as const];
  });
  return {
    PUSHLEFT_RUNTIME: 'process',
    PUSHLEFT_AGENT_STOP_GRACE_SECONDS: STOP_GRACE_SECONDS,
    ...environment,
    ...Object.fromEntries(handedOn),
    PUSHLEFT_AGENT_CA: onDisk(directory, HOST_PATHS.gatewayCa),
    PUSHLEFT_AGENT_STATE_DIR: onDisk(directory, dirname(HOST_PATHS.enrollmentSecret)),
  };
}

function environmentText(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => {
      if (/['\n]/.test(value)) throw new Error(`the value of ${name} has a quote or a line break`);
      return `${name}='${value}'\n`;
    })
    .join('');
}

/** The machine's one service. */
class AgentUnit {
  readonly #disk: Disk;
  readonly #program: string;
  readonly #stopping = new AbortController();
  #child: ChildProcess | undefined;

  constructor(disk: Disk) {
    this.#disk = disk;
    this.#program =
      process.env['PUSHLEFT_STUB_AGENT'] ??
      fileURLToPath(new URL('../../agent/bin/pushleft-agent.js', import.meta.url));
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => this.#stop(signal));
  }

  /** Enrols, then keeps the agent running until the machine goes off. Answers the exit code. */
  async live(): Promise<number> {
    const enrolled = await this.#exec('enroll');
    if (this.#stopping.signal.aborted) return 0;
    // A host that enrolled before runs its agent whatever becomes of a later attempt, as systemd does: it waits there for a new identity.
    const identity = onDisk(this.#disk.directory, join(dirname(HOST_PATHS.enrollmentSecret), 'pki/current'));
    if (enrolled !== 0 && !existsSync(identity)) {
      this.#note(`enrolment ended with ${enrolled}; the agent is not started`);
      return enrolled;
    }
    let pauseMs = RESTART_FIRST_MS;
    for (;;) {
      const startedAt = performance.now();
      const code = await this.#exec('run');
      if (this.#stopping.signal.aborted) return 0;
      if (performance.now() - startedAt >= WELL_AFTER_MS) pauseMs = RESTART_FIRST_MS;
      this.#note(`the agent ended with ${code} and is started again in ${pauseMs} ms`);
      await delay(pauseMs, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      if (this.#stopping.signal.aborted) return 0;
      pauseMs = Math.min(pauseMs * 2, RESTART_LONGEST_MS);
    }
  }

  /** Runs one command of the agent and answers its exit code; 128 stands for a signal. */
  async #exec(command: 'enroll' | 'run'): Promise<number> {
    const { directory, environmentFile } = this.#disk;
    const log = openSync(join(directory, 'agent.log'), 'a', 0o600);
    try {
      const child = spawn(process.execPath, [this.#program, command, '--environment-file', environmentFile], {
        cwd: directory,
        stdio: ['ignore', log, log],
        env: Object.fromEntries(SURROUNDINGS.map((name) => [name, process.env[name]])),
      });
      this.#child = child;
      return await new Promise((resolve, reject) => {
        child.once('error', reject).once('exit', (code) => resolve(code ?? 128));
      });
    } finally {
      this.#child = undefined;
      closeSync(log);
    }
  }

  #stop(signal: NodeJS.Signals): void {
    this.#stopping.abort();
    setTimeout(() => this.#child?.kill(signal), PASS_ON_AFTER_MS).unref();
  }

  #note(line: string): void {
    appendFileSync(join(this.#disk.directory, 'agent.log'), `boot-agent: ${line}\n`, { mode: 0o600 });
  }
}

const userDataFile = process.env['PUSHLEFT_STUB_USER_DATA_FILE'];
if (userDataFile === undefined)
  throw new Error('PUSHLEFT_STUB_USER_DATA_FILE is not set: the Hetzner stub runs this program');
process.exitCode = await new AgentUnit(materialise(userDataFile)).live();
