import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { type EndOptions, endProcess } from './end-process.ts';
import { describeExit, lastLogLines, type ProcessExit } from './log-file.ts';
import { isRunning, signalProcess } from './process-identity.ts';
import { type LoggedProcess, spawnLogged } from './spawn-logged.ts';

export interface ProgramStart {
  /** Names it in messages, in up.json and its log: STATE_DIR/logs/<name>.log. */
  name: string;
  command: string;
  args: string[];
  /** Its whole environment: nothing of ours is inherited. */
  env: Readonly<Record<string, string>>;
  /** Default: the state directory. */
  cwd?: string;
  /** Asked until it answers true; a throw counts as not yet. */
  ready: () => boolean | Promise<boolean>;
  /** Default 60 s. The wait also ends with the process. */
  readyDeadlineMs?: number;
}

export interface SupervisorOptions {
  stateDir: string;
  /** Called, and awaited, with all that run whenever one was started or has ended: `up` writes them to up.json. */
  record: (running: readonly LoggedProcess[]) => Promise<void>;
  /** Called when a process ends that nobody asked to. It is not started again: what ends by itself needs a person's eye. */
  onUnexpectedExit: (ended: LoggedProcess, exit: ProcessExit) => void;
  log?: (line: string) => void;
}

/**
 * Starts the fleet's programs and stops them in the reverse order. It restarts nothing.
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  /** In the order of their start, each with what is done once it has ended. */
  readonly #running = new Map<LoggedProcess, Promise<void>>();
  /** Those whose end has somebody waiting for it already, in `start` or `stopAll`. */
  readonly #endExpected = new Set<LoggedProcess>();

  constructor(options: SupervisorOptions) {
    this.#options = options;
  }

  get running(): readonly LoggedProcess[] {
    return [...this.#running.keys()];
  }

  /** Answers when the program is ready. Throws with its last log lines when it ends or stays unready; it is stopped then. */
  async start(program: ProgramStart): Promise<LoggedProcess> {
    const started = await this.#spawn(program);
    try {
      await waitUntilReady(started, program);
      // Gone when it ended in the very moment that it was found ready.
      if (!this.#endExpected.delete(started)) throw await endedWhileStarting(started);
      return started;
    } catch (error) {
      await this.#stop(started, { graceMs: 5_000 });
      throw error;
    }
  }

  /** SIGTERM, and SIGKILL to the whole process group after the grace; the last started first, one at a time. */
  async stopAll(options: EndOptions = {}): Promise<void> {
    for (const running of this.running.toReversed()) await this.#stop(running, options);
  }

  /** SIGKILL to all at once, without waiting: for the second Ctrl-C. */
  killAll(): void {
    for (const running of this.running) {
      this.#endExpected.add(running);
      signalProcess(running.process, 'SIGKILL', { group: true });
    }
  }

  #spawn({ name, command, args, env, cwd }: ProgramStart): Promise<LoggedProcess> {
    const { stateDir } = this.#options;
    return spawnLogged({
      name,
      command,
      args,
      logFile: join(stateDir, 'logs', `${name}.log`),
      options: { env: { ...env }, cwd: cwd ?? stateDir },
      record: async (started) => {
        this.#endExpected.add(started);
        this.#running.set(started, this.#afterExit(started));
        await this.#options.record(this.running);
      },
    });
  }

  async #stop(running: LoggedProcess, options: EndOptions): Promise<void> {
    const ended = this.#running.get(running);
    if (ended === undefined) return;
    this.#endExpected.add(running);
    await endProcess(running, { ...(this.#options.log === undefined ? {} : { log: this.#options.log }), ...options });
    await ended;
  }

  async #afterExit(ended: LoggedProcess): Promise<void> {
    const exit = await ended.exited;
    this.#running.delete(ended);
    if (!this.#endExpected.delete(ended)) this.#options.onUnexpectedExit(ended, exit);
    await this.#options.record(this.running).catch((error: unknown) => {
      // The next `up` compares start times, so a stale entry harms nobody.
      this.#options.log?.(`${ended.name}: its end could not be recorded: ${String(error)}`);
    });
  }
}

async function waitUntilReady(started: LoggedProcess, program: ProgramStart): Promise<void> {
  const { readyDeadlineMs = 60_000 } = program;
  const startedAt = performance.now();
  for (;;) {
    if (!isRunning(started.process)) throw await endedWhileStarting(started);
    if (await answersTrue(program)) return;
    if (performance.now() - startedAt >= readyDeadlineMs) {
      const lines = await lastLogLines(started.logFile);
      throw new Error([`${started.name} is not ready after ${readyDeadlineMs} ms`, ...lines].join('; '));
    }
    await delay(50);
  }
}

async function endedWhileStarting({ name, exited }: LoggedProcess): Promise<Error> {
  return new Error(`${name} ended while starting: ${describeExit(await exited)}`);
}

async function answersTrue(program: ProgramStart): Promise<boolean> {
  try {
    return await program.ready();
  } catch {
    return false;
  }
}
