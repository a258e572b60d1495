import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { clientConfig, isConnectionError, isTransient, WRITER_LIMITS } from '../database/connect.ts';
import { GatheringSocket } from '../database/gathering-socket.ts';
import { runBatch, type Settled } from './batch.ts';
import {
  type CommandDefinition,
  type CommandOptions,
  type CommandOutcome,
  type PendingCommand,
  UnavailableError,
} from './command.ts';

/** How a transactor is set up. `patienceMs` is how long a batch is tried again while the database is away. */
export interface TransactorOptions {
  readonly url: string;
  readonly program: string;
  readonly programVersion: string;
  readonly maxQueue?: number;
  readonly maxBatch?: number;
  readonly patienceMs?: number;
}

const RETRY_MS = 100;

/**
 * Decides commands under the fleet's one lock. While a batch is on its way the next one gathers, so that under load many commands share
 * a transaction, and a lone command waits for nobody. One connection; several processes may each have a transactor.
 */
export class Transactor {
  readonly #options: Required<TransactorOptions>;
  readonly #queue: PendingCommand[] = [];
  #client: pg.Client | undefined;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(options: TransactorOptions) {
    this.#options = { maxQueue: 10_000, maxBatch: 256, patienceMs: 5_000, ...options };
  }

  /**
   * Gives a command and resolves with what became of it, after it is committed. Rejects with {@link UnavailableError} when it was not
   * decided, and with the exception when its own code threw.
   */
  execute<C, S>(
    definition: CommandDefinition<C, S>,
    command: C,
    { actor, commandId = randomUUID(), correlationId = commandId, signal }: CommandOptions,
  ): Promise<CommandOutcome> {
    if (this.#closed) return Promise.reject(new UnavailableError('closed', 'the transactor is closed'));
    if (this.#queue.length >= this.#options.maxQueue) {
      return Promise.reject(new UnavailableError('queue_full', `${this.#queue.length} commands are waiting already`));
    }
    return new Promise((resolve, reject) => {
      const erased = definition as unknown as CommandDefinition<unknown, unknown>;
      this.#queue.push({ definition: erased, command, commandId, correlationId, actor, signal, resolve, reject });
      this.#running ??= this.#drain();
    });
  }

  /** Commands that wait for their turn. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Takes no more commands, decides those that wait, closes the connection. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#running;
    await this.#client?.end().catch(() => undefined);
    this.#client = undefined;
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, this.#options.maxBatch).filter((pending) => {
        if (pending.signal?.aborted !== true) return true;
        pending.reject(new UnavailableError('caller_gone', 'the caller went away before its command was decided'));
        return false;
      });
      if (batch.length > 0) await this.#settle(batch);
    }
    this.#running = undefined;
  }

  async #settle(batch: readonly PendingCommand[]): Promise<void> {
    try {
      const settled = await this.#attempt(batch);
      for (const [i, pending] of batch.entries()) answer(pending, settled[i]);
    } catch (error) {
      const [only, ...others] = batch;
      if (others.length === 0 || error instanceof UnavailableError) {
        for (const pending of batch) pending.reject(error);
      } else {
        // One of them made the database refuse the whole batch: alone, only that one fails.
        for (const pending of [only, ...others]) if (pending !== undefined) await this.#settle([pending]);
      }
    }
  }

  /** Runs a batch, again when the connection was lost: the memory of commands tells what was committed before it went. */
  async #attempt(batch: readonly PendingCommand[]): Promise<Settled[]> {
    const deadline = performance.now() + this.#options.patienceMs;
    for (;;) {
      try {
        return await runBatch(await this.#connect(), batch, { programVersion: this.#options.programVersion, epoch: 1 });
      } catch (error) {
        const lost = isConnectionError(error);
        if (lost) await this.#disconnect();
        else await this.#client?.query('ROLLBACK').catch(() => this.#disconnect());
        if (!lost && !isTransient(error)) throw error;
        if (performance.now() >= deadline) {
          throw new UnavailableError('database', 'the database does not answer', { cause: error });
        }
        await delay(RETRY_MS);
      }
    }
  }

  async #connect(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const { url, program } = this.#options;
    const config = clientConfig({ url, program, limits: WRITER_LIMITS });
    const client = new pg.Client({ ...config, pipeline: true, stream: () => new GatheringSocket() });
    client.on('error', () => {
      if (this.#client === client) this.#client = undefined;
    });
    await client.connect();
    this.#client = client;
    return client;
  }

  async #disconnect(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    await client?.end().catch(() => undefined);
  }
}

function answer(pending: PendingCommand, settled: Settled | undefined): void {
  if (settled === undefined) pending.reject(new Error('a batch left a command without an outcome'));
  else if ('error' in settled) pending.reject(settled.error);
  else pending.resolve(settled.outcome);
}
