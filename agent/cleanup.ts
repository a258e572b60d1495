import type { CleanupTask } from '../src/protocol/lease.ts';
import { describeError, type Log } from './log.ts';
import type { Runtime } from './runtime/runtime.ts';

/** An instance that was replaced elsewhere has this long to end by itself. */
const GRACE_MS = 10_000;

/**
 * Removes what was fenced away from this host while it was lost, and remembers what is gone for sure until the gateway has been told. Nothing of
 * it needs to outlive the process: whoever was not told lists the task again, and what is gone is found to be gone.
 */
export class Cleanup {
  readonly #runtime: Pick<Runtime, 'remove'>;
  readonly #log: Log;
  readonly #gone = new Set<string>();

  constructor(runtime: Pick<Runtime, 'remove'>, log: Log) {
    this.#runtime = runtime;
    this.#log = log;
  }

  /** Instances that are gone and that the gateway was not told of yet: no more than a list has, which is what a request holds. */
  get cleaned(): string[] {
    return [...this.#gone];
  }

  /** The gateway has heard of these. */
  acknowledge(cleaned: readonly string[]): void {
    for (const id of cleaned) this.#gone.delete(id);
  }

  /** Does each task, one after the other; one that fails is logged, and left for the next list. */
  async perform(tasks: readonly CleanupTask[], stopping: AbortSignal): Promise<void> {
    for (const { instance_id: id, generation } of tasks) {
      if (stopping.aborted) return;
      try {
        const removed = await this.#runtime.remove({ id, generation }, GRACE_MS, stopping);
        if (removed) this.#log.info({ instance: id }, 'instance of a lost node removed');
        this.#gone.add(id);
      } catch (error) {
        if (!stopping.aborted) this.#log.error({ instance: id, reason: describeError(error) }, 'instance not removed');
      }
    }
  }
}
