import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import {
  createClient,
  isConnectionError,
  isTransient,
  type SessionLimits,
  WRITER_LIMITS,
} from '../database/connect.ts';
import { readLockSessions } from '../database/lock-sessions.ts';
import type { DecisionTime } from '../domain/decision.ts';
import { EPOCH } from '../log/epoch.ts';
import type { LogEngine } from '../log/event-log.ts';
import { postgresLogEngine } from '../log/postgres/postgres-event-log.ts';
import type { Queryable } from '../log/postgres/reader.ts';
import { CommitUnclearError, runBatch, type Settled } from './batch.ts';
import {
  type CommandDefinition,
  type CommandOptions,
  type CommandOutcome,
  type PendingCommand,
  UnavailableError,
} from './command.ts';
import type { Rows } from './row-view.ts';

/**
 * How a transactor is set up. `patienceMs` is for how long a command, from when it was given, is tried again while the database is away
 * or its lock is busy. `limits` are its session's; `log` is where its events go (default: the same PostgreSQL).
 */
export interface TransactorOptions {
  readonly url: string;
  readonly program: string;
  readonly programVersion: string;
  readonly maxQueue?: number;
  readonly maxBatch?: number;
  readonly patienceMs?: number;
  readonly limits?: SessionLimits;
  readonly log?: LogEngine<Queryable>;
}

/** Commands that the database kept from being decided this time. */
interface Undecided {
  readonly commands: readonly PendingCommand[];
  readonly cause: unknown;
}

const RETRY_MS = 100;
/** A batch is tried twice before the first of its callers is told no, even when the first try waits for the lock to the end. */
const PATIENCE_MS = 5_000;

/**
 * Decides commands under the fleet's one lock. While a batch is on its way the next one gathers, so that under load many commands share
 * a transaction, and a lone command waits for nobody. One connection; several processes may each have a transactor.
 */
export class Transactor {
  readonly #options: Required<TransactorOptions>;
  readonly #queue: PendingCommand[] = [];
  /** Commands whose batch was at its COMMIT when the connection was lost. */
  readonly #unclear = new WeakSet<PendingCommand>();
  #client: pg.Client | undefined;
  #draining = false;
  #drained: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: TransactorOptions) {
    this.#options = {
      maxQueue: 10_000,
      maxBatch: 256,
      patienceMs: PATIENCE_MS,
      limits: WRITER_LIMITS,
      log: postgresLogEngine,
      ...options,
    };
  }

  /**
   * Gives a command and resolves with what became of it, after it is committed. Rejects with {@link UnavailableError} when it was not
   * decided (`outcome_unknown`: perhaps it was), and with the exception when its own code threw. Answers within the patience and what
   * one try takes.
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
      const load = async (rows: Rows) => {
        const state = await definition.load(rows, command);
        return (time: DecisionTime) => definition.decide(command, state, time);
      };
      const deadline = performance.now() + this.#options.patienceMs;
      this.#queue.push({
        load,
        commandId,
        correlationId,
        actor,
        signal,
        deadline,
        resolve,
        reject,
      });
      if (!this.#draining) this.#drained = this.#drain();
    });
  }

  /** Commands that wait for their turn. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Takes no more commands, decides those that wait, closes the connection; cuts short what takes longer than the patience. */
  async close(): Promise<void> {
    this.#closed = true;
    const cut = setTimeout(() => {
      this.#client?.connection.stream.destroy(new Error('Connection terminated: the transactor is closed'));
    }, this.#options.patienceMs);
    await this.#drained;
    clearTimeout(cut);
    await this.#disconnect();
  }

  /**
   * The flag, not the promise, says whether anyone drains: where all callers are gone, this ends before its promise is even returned, and
   * a promise kept as the sign would stand for ever.
   */
  async #drain(): Promise<void> {
    this.#draining = true;
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, this.#options.maxBatch).filter((pending) => {
        if (pending.signal?.aborted !== true) return true;
        const gone = new UnavailableError('caller_gone', 'the caller went away before its command was decided');
        this.#refuse(pending, gone);
        return false;
      });
      const undecided = batch.length > 0 ? await this.#settle(batch) : undefined;
      if (undecided !== undefined) await this.#putBack(undecided);
    }
    this.#draining = false;
  }

  /** Runs a batch and answers its commands. Returns those that are to be tried again. */
  async #settle(batch: readonly PendingCommand[]): Promise<Undecided | undefined> {
    try {
      const { programVersion, log } = this.#options;
      const client = await this.#connect();
      const settled = await runBatch(client, log.writer(client), batch, { programVersion, epoch: EPOCH });
      for (const [i, pending] of batch.entries()) answer(pending, settled[i]);
      return undefined;
    } catch (error) {
      return this.#failed(batch, error);
    }
  }

  async #failed(batch: readonly PendingCommand[], error: unknown): Promise<Undecided | undefined> {
    if (error instanceof CommitUnclearError) {
      for (const pending of batch) if (error.commandIds.has(pending.commandId)) this.#unclear.add(pending);
      await this.#disconnect();
      return { commands: batch, cause: error.cause };
    }
    if (isConnectionError(error)) {
      await this.#disconnect();
      return { commands: batch, cause: error };
    }
    await this.#client?.query('ROLLBACK').catch(() => this.#disconnect());
    if (isTransient(error)) return { commands: batch, cause: error };
    if (batch.length === 1 || error instanceof UnavailableError) {
      for (const pending of batch) this.#refuse(pending, error);
      return undefined;
    }
    // One of them made the database refuse the whole batch: alone, only that one fails.
    for (const [i, pending] of batch.entries()) {
      const undecided = await this.#settle([pending]);
      if (undecided !== undefined) return { ...undecided, commands: batch.slice(i) };
    }
    return undefined;
  }

  /**
   * Puts commands back in front of the queue for another try: the memory of commands tells what was committed before a connection was
   * lost. All that wait past their deadline are told no, at once.
   */
  async #putBack({ commands, cause }: Undecided): Promise<void> {
    const now = performance.now();
    const waiting = [...commands, ...this.#queue];
    const late = waiting.filter(({ deadline }) => deadline <= now);
    this.#queue.splice(0, this.#queue.length, ...waiting.filter(({ deadline }) => deadline > now));
    if (late.length > 0) {
      const error = await this.#unavailable(cause);
      for (const pending of late) this.#refuse(pending, error);
    }
    if (this.#queue.length > 0) await delay(RETRY_MS);
  }

  /** Why nothing is decided. Where a lock is in the way, names the program that holds it. */
  async #unavailable(cause: unknown): Promise<UnavailableError> {
    if (!isTransient(cause)) return new UnavailableError('database', 'the database does not answer', { cause });
    const sessions = this.#client === undefined ? [] : await readLockSessions(this.#client).catch(() => []);
    const holder = sessions.find(({ granted }) => granted);
    const message =
      holder === undefined ? 'a lock was not to be had' : `the decision lock is held by ${holder.program}`;
    return new UnavailableError('lock_busy', message, { cause });
  }

  /** Rejects a command; one that may have been committed is never told that it was not decided. */
  #refuse(pending: PendingCommand, error: unknown): void {
    const unclear = this.#unclear.has(pending) && error instanceof UnavailableError;
    const unknown = 'the connection was lost at the commit, and whether the command took effect could not be asked';
    pending.reject(unclear ? new UnavailableError('outcome_unknown', unknown, { cause: error }) : error);
  }

  async #connect(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const { url, program, limits } = this.#options;
    const client = createClient({ url, program, limits }, { pipeline: true });
    const forget = () => {
      if (this.#client === client) this.#client = undefined;
    };
    client.on('error', forget);
    this.#client = client;
    try {
      await client.connect();
    } catch (error) {
      forget();
      throw error;
    }
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
