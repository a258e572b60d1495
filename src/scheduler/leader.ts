import type pg from 'pg';
import { type ConnectionOptions, createClient } from '../database/connect.ts';
import { LEADER_LOCK } from '../database/locks.ts';

/**
 * Leadership among scheduler replicas: a session lock on a connection of its own. A leader that is stopped (SIGSTOP, a suspended
 * machine) stops asking, and the server ends its session after `idleMs`, which frees the lock for another replica. Commands are decided
 * under the fleet's lock anyway, so two that both believe they lead for a moment do no harm, only the same work twice.
 */
export class Leadership {
  readonly #options: ConnectionOptions;
  readonly #idleMs: number;
  #client: pg.Client | undefined;
  #leads = false;

  constructor(options: ConnectionOptions, idleMs: number) {
    this.#options = options;
    this.#idleMs = idleMs;
  }

  /** Whether this replica leads now; asks for the lock when it does not have it. Throws when the database is away. */
  async check(): Promise<boolean> {
    const client = await this.#connect();
    if (this.#leads) await client.query('SELECT 1');
    else {
      const { rows } = await client.query<{ won: boolean }>('SELECT pg_try_advisory_lock($1, $2) AS won', [
        ...LEADER_LOCK,
      ]);
      this.#leads = rows[0]?.won === true;
    }
    return this.#leads;
  }

  /** Gives leadership up. */
  async close(): Promise<void> {
    const client = this.#client;
    this.#lose(client);
    await client?.end().catch(() => undefined);
  }

  async #connect(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const client = createClient(this.#options, { idleSessionMs: this.#idleMs });
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    await client.connect();
    this.#client = client;
    return client;
  }

  #lose(client: pg.Client | undefined): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#leads = false;
  }
}
