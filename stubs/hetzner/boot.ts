import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { identifyProcess, isRunning } from '../../src/up/process-identity.ts';
import { endProcessGroup } from './process-group.ts';
import type { Machines } from './project.ts';
import type { Server } from './state.ts';

/** Switches off what a boot hook started. */
type SwitchOff = () => void | Promise<void>;

/** Called in this process each time a server boots. What it returns is called when the server goes off. */
export type BootHook = (
  server: { readonly id: number; readonly name: string },
  userData: string,
) => SwitchOff | undefined;

/** A command that stands for a machine: run by /bin/sh in `dir`/<server id>/ each time a server boots. */
export interface BootCommand {
  readonly command: string;
  readonly dir: string;
  /** How long SIGTERM has to do, in milliseconds, before SIGKILL. */
  readonly graceMs?: number;
}

/** What happens when servers boot, and where changes of `server.process` are reported. */
interface BootOptions {
  readonly onBoot?: BootHook;
  readonly bootCommand?: BootCommand;
  readonly onChange: () => Promise<void>;
  /** Told when a machine could not be switched on or off. */
  readonly onFault: (error: unknown) => void;
}

const DEFAULT_GRACE_MS = 5_000;
/**
 * The command waits for a line that says its process is recorded. A stub that is killed before that closes the pipe, and the
 * command never starts: there is no machine that the next stub does not know of.
 */
const AFTER_RECORD = 'read -r _ || exit 1; exec </dev/null';
/** Tokens of the API have no business on the machines. */
const WITHHELD = ['HETZNER_STUB_TOKEN', 'HETZNER_API_TOKEN', 'HCLOUD_TOKEN'];

/** Runs a boot hook and a boot command for servers. What concerns one server happens one after the other. */
export class BootedMachines implements Machines {
  readonly #options: BootOptions;
  readonly #queues = new Map<number, Promise<void>>();
  readonly #hooked = new Map<number, SwitchOff>();

  constructor(options: BootOptions) {
    this.#options = options;
  }

  /** Boots the server; one that is up already goes off first. */
  powerOn(server: Server): void {
    this.#enqueue(server, async () => {
      await this.#stop(server);
      await this.#start(server);
    });
  }

  /** Ends what the boot started, with all its children. */
  powerOff(server: Server): void {
    this.#enqueue(server, () => this.#stop(server));
  }

  /** Ends it and erases its directory, as a deleted server's disk is. */
  destroy(server: Server): void {
    this.#enqueue(server, async () => {
      await this.#stop(server);
      if (this.#options.bootCommand !== undefined) rmSync(this.#directory(server), { recursive: true, force: true });
    });
  }

  /** After a start of the stub: keeps the processes that outlived it, boots the running servers that have none, ends the rest. */
  resume(servers: readonly Server[]): void {
    for (const server of servers) {
      const survived = server.process !== null && isRunning(server.process);
      if (server.status !== 'running') this.powerOff(server);
      else if (!survived) this.powerOn(server);
    }
  }

  /** Waits until everything asked for has happened. */
  async idle(): Promise<void> {
    await Promise.all(this.#queues.values());
  }

  #enqueue(server: Server, task: () => void | Promise<void>): void {
    const before = this.#queues.get(server.id) ?? Promise.resolve();
    const after = before
      .then(task)
      .catch(this.#options.onFault)
      .finally(() => {
        if (this.#queues.get(server.id) === after) this.#queues.delete(server.id);
      });
    this.#queues.set(server.id, after);
  }

  async #start(server: Server): Promise<void> {
    const off = this.#options.onBoot?.({ id: server.id, name: server.name }, server.userData);
    if (off !== undefined) this.#hooked.set(server.id, off);
    if (this.#options.bootCommand === undefined) return;
    const child = this.#spawn(server, this.#options.bootCommand.command);
    child.once('error', this.#options.onFault);
    // At once: until Node has reaped it, even a child that has ended already is known to the kernel.
    server.process = (child.pid === undefined ? undefined : identifyProcess(child.pid)) ?? null;
    await this.#options.onChange();
    child.stdin?.on('error', () => {}).end('recorded\n');
  }

  #spawn(server: Server, command: string): ChildProcess {
    const directory = this.#directory(server);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const userDataFile = join(directory, 'user-data');
    rmSync(userDataFile, { force: true });
    writeFileSync(userDataFile, server.userData, { mode: 0o600, flag: 'wx' });
    const log = openSync(join(directory, 'boot.log'), 'a', 0o600);
    try {
      return spawn('/bin/sh', ['-c', `${AFTER_RECORD}\n${command}`], {
        cwd: directory,
        detached: true,
        stdio: ['pipe', log, log],
        env: {
          ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !WITHHELD.includes(name))),
          PUSHLEFT_STUB_USER_DATA_FILE: userDataFile,
          PUSHLEFT_STUB_SERVER_ID: String(server.id),
          PUSHLEFT_STUB_SERVER_NAME: server.name,
        },
      });
    } finally {
      closeSync(log);
    }
  }

  async #stop(server: Server): Promise<void> {
    const off = this.#hooked.get(server.id);
    this.#hooked.delete(server.id);
    await off?.();
    if (server.process === null) return;
    await endProcessGroup(server.process, this.#options.bootCommand?.graceMs ?? DEFAULT_GRACE_MS);
    server.process = null;
    await this.#options.onChange();
  }

  #directory(server: Server): string {
    return join(this.#options.bootCommand?.dir ?? '.', String(server.id));
  }
}
