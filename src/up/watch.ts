import { setTimeout as delay } from 'node:timers/promises';
import { describeExit, type ProcessExit } from './log-file.ts';

/** Something that ended although nobody asked it to. */
export interface UnexpectedEnd {
  readonly name: string;
  readonly logFile: string;
  readonly exit: ProcessExit;
  /** Starts it again. */
  readonly restart: () => Promise<unknown>;
}

export interface WatchOptions {
  /** Called at once, with one line. */
  readonly onTrouble: (line: string) => void;
  /** Undefined: what died stays dead, and `broken` aborts. */
  readonly restartAfterMs?: number | undefined;
}

/** What happens when a part of the fleet dies: it is told at once and, where that is wished for, started again after a while. */
export class Watch {
  readonly #options: WatchOptions;
  readonly #broken = new AbortController();
  readonly #closing = new AbortController();
  readonly #restarts = new Set<Promise<void>>();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  /** Aborts, with what happened, when something died that nobody is going to start again. */
  get broken(): AbortSignal {
    return this.#broken.signal;
  }

  /** Tells of the end, and starts the thing again when it is time. Does nothing once closed. */
  ended(end: UnexpectedEnd): void {
    if (this.#closing.signal.aborted) return;
    const { restartAfterMs } = this.#options;
    const line = `${end.name} died: ${describeExit(end.exit)}; its log is ${end.logFile}`;
    if (restartAfterMs === undefined) {
      this.#options.onTrouble(line);
      this.#broken.abort(new Error(line));
      return;
    }
    this.#options.onTrouble(`${line}; it is started again in ${restartAfterMs / 1_000} s`);
    const restart = this.#restartLater(end, restartAfterMs).finally(() => this.#restarts.delete(restart));
    this.#restarts.add(restart);
  }

  /** From now on ends are expected. Answers when no restart is under way any more. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.all(this.#restarts);
  }

  async #restartLater({ name, logFile, restart }: UnexpectedEnd, afterMs: number): Promise<void> {
    const { signal } = this.#closing;
    for (;;) {
      await delay(afterMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      try {
        await restart();
        return this.#options.onTrouble(`${name} runs again`);
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        this.#options.onTrouble(`${name} cannot be started again yet: ${reason}; its log is ${logFile}`);
      }
    }
  }
}
