import { Socket } from 'node:net';
import pg from 'pg';
import { GatheringSocket } from './gathering-socket.ts';

/** How long a connection that is given up may take to say goodbye. */
const GOODBYE_MS = 1_000;

/** `answerMs`: how long the client waits until all that it asked is answered; 0 for as long as it takes. */
export interface BoundedClientConfig extends pg.ClientConfig {
  readonly answerMs: number;
}

/** The database took a question and has said nothing since: what it did with it is not known. */
class SilentDatabaseError extends Error {
  override readonly name = 'SilentDatabaseError';
  readonly code = 'ETIMEDOUT';
}

/**
 * A client that waits for nobody for ever: a server that is stopped, or behind a network that swallows packets, answers no limit of its
 * own. When an answer is overdue the connection is broken off, and everything that was asked on it fails as for any lost connection.
 * pg's `query_timeout` would fail the one query and, outside pipeline mode, leave the blocked connection to its next user.
 */
export class BoundedClient extends pg.Client {
  readonly #answerMs: number;
  #overdue: NodeJS.Timeout | undefined;

  constructor(config: BoundedClientConfig = { answerMs: 0 }) {
    super({ ...config, stream: () => (config.pipeline === true ? new GatheringSocket() : new Socket()) });
    this.#answerMs = config.answerMs;
    this.on('drain', () => this.#answered());
    this.on('end', () => this.#answered());
    // Whoever asks hears of a lost connection from the answer; an error event that nobody awaits would end the process.
    this.on('error', () => this.#answered());
  }

  // One signature that fits under all of pg's; callers see those.
  override query(...question: never[]): never {
    if (this.#answerMs > 0) this.#overdue ??= setTimeout(() => this.#breakOff(), this.#answerMs).unref();
    return Reflect.apply(super.query.bind(this), this, question) as never;
  }

  override end(...done: never[]): never {
    const { stream } = this.connection;
    const goodbye = setTimeout(() => stream.destroy(), GOODBYE_MS).unref();
    this.once('end', () => clearTimeout(goodbye));
    return Reflect.apply(super.end.bind(this), this, done) as never;
  }

  #answered(): void {
    clearTimeout(this.#overdue);
    this.#overdue = undefined;
  }

  #breakOff(): void {
    this.connection.stream.destroy(new SilentDatabaseError(`the database was silent for ${this.#answerMs} ms`));
  }
}
