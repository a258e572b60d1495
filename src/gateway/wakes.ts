import { setTimeout as delay } from 'node:timers/promises';
import { type ConnectionOptions, createClient } from '../database/connect.ts';
import { LOG_CHANNEL } from '../log/postgres/append.ts';
import type { Loader, Tick } from './loader.ts';

/** A notification may be lost (a writer that died after its commit, a broken connection): look anyway, this often. */
const POLL_MS = 1_000;
const RECONNECT_MS = 500;

/** What ends a wait. */
export interface WaitLimits {
  readonly ms: number;
  readonly signal: AbortSignal;
}

/**
 * Wakes waiting lease requests when an event authorises someone or offers work. Each commit costs one small query, whoever waits; only
 * a move of one of the two positions wakes anybody.
 */
export class Wakes {
  readonly #loader: Loader;
  readonly #connection: ConnectionOptions;
  readonly #stop = new AbortController();
  readonly #waiting = new Set<() => void>();
  #latest: Pick<Tick, 'authorises' | 'offersWork'> = { authorises: 0, offersWork: 0 };
  #look: () => void = () => undefined;
  #running: Promise<unknown> = Promise.resolve();

  constructor(loader: Loader, connection: ConnectionOptions) {
    this.#loader = loader;
    this.#connection = connection;
  }

  /** How many requests wait. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Aborted once the gateway stops: waits end at once. */
  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  /** Begins to listen. */
  start(): void {
    this.#running = Promise.all([this.#listen(), this.#poll()]);
  }

  /** Ends every wait and the connection. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#look();
    this.#wakeAll();
    await this.#running;
  }

  /** Resolves when something has moved since `tick`, at the limits, or when the gateway stops. Never rejects. */
  moved(tick: Tick, { ms, signal }: WaitLimits): Promise<void> {
    if (this.#stop.signal.aborted || signal.aborted || ms <= 0 || this.#isBehind(tick)) return Promise.resolve();
    return new Promise((resolve) => {
      const end = () => {
        this.#waiting.delete(end);
        clearTimeout(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end);
      this.#waiting.add(end);
    });
  }

  #isBehind(tick: Tick): boolean {
    return this.#latest.authorises > tick.authorises || this.#latest.offersWork > tick.offersWork;
  }

  #wakeAll(): void {
    for (const end of this.#waiting) end();
  }

  async #poll(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#look = resolve;
      // While the database is away nothing moves; whoever waits is answered at the limit and learns it then.
      const tick = await this.#loader.tick().catch(() => undefined);
      if (tick !== undefined && this.#hasMoved(tick)) {
        this.#latest = { authorises: tick.authorises, offersWork: tick.offersWork };
        this.#wakeAll();
      }
      const timer = setTimeout(resolve, POLL_MS);
      await promise;
      clearTimeout(timer);
    }
  }

  #hasMoved(tick: Tick): boolean {
    return tick.authorises !== this.#latest.authorises || tick.offersWork !== this.#latest.offersWork;
  }

  async #listen(): Promise<void> {
    while (!this.#stop.signal.aborted) {
      const client = createClient(this.#connection);
      const lost = Promise.withResolvers<void>();
      client.on('error', () => lost.resolve());
      client.on('end', () => lost.resolve());
      client.on('notification', () => this.#look());
      try {
        await client.connect();
        await client.query(`LISTEN ${LOG_CHANNEL}`);
        this.#look(); // what was said before we listened was not heard
        const aborted = () => lost.resolve();
        this.#stop.signal.addEventListener('abort', aborted);
        if (!this.#stop.signal.aborted) await lost.promise;
        this.#stop.signal.removeEventListener('abort', aborted);
      } catch {
        // The poll makes up for what is not heard until the next try.
      }
      await client.end().catch(() => undefined);
      await delay(RECONNECT_MS, undefined, { signal: this.#stop.signal }).catch(() => undefined);
    }
  }
}
