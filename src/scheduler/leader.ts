import type pg from 'pg';
import { type ConnectionOptions, createClient } from '../database/connect.ts';
import { DECISION_LOCK, LEADER_LOCK } from '../database/locks.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';

/**
 * Begins a term, under the decision lock: whatever the leader before had decided is in the log by then, and whatever it gives later is
 * refused. A row that was lost with telemetry is made anew, with a term that no earlier leader can have had in this state of the log and
 * a clock at which nobody is silent.
 */
const BEGIN_TERM = `
  WITH lock AS MATERIALIZED (SELECT pg_advisory_xact_lock(${DECISION_LOCK}) AS held)
  INSERT INTO telemetry.scheduler AS led (id, term, holder, heard_ms)
  SELECT $1, (SELECT coalesce(max(position), 0) + 1 FROM log.events), $2,
         (SELECT coalesce(max(heard_ms), 0) FROM telemetry.node_liveness)
  FROM lock
  ON CONFLICT (id) DO UPDATE SET term = led.term + 1, holder = excluded.holder
  RETURNING term`;

/** How a replica asks for leadership. `idleMs`: for how long it may ask nothing before the server ends its session. */
export interface LeadershipOptions {
  readonly connection: ConnectionOptions;
  /** The name under which it leads. */
  readonly holder: string;
  readonly idleMs: number;
}

/**
 * Leadership among scheduler replicas: a session lock on a connection of its own, and a term that begins with it. A leader that is
 * stopped (SIGSTOP, a suspended machine) stops asking, and the server ends its session after `idleMs`, which frees the lock for another
 * replica. The stopped one may believe for a moment longer that it leads; its commands carry its term and are refused.
 */
export class Leadership {
  readonly #options: LeadershipOptions;
  #client: pg.Client | undefined;
  #term: number | undefined;

  constructor(options: LeadershipOptions) {
    this.#options = options;
  }

  /** The term in which this replica leads; undefined while another does. Asks for the lock when it does not have it. Throws when the database is away. */
  async check(): Promise<number | undefined> {
    const client = await this.#connect();
    if (this.#term !== undefined) await client.query('SELECT 1');
    else if (await this.#winLock(client)) await this.#beginTerm(client);
    return this.#term;
  }

  /** Gives leadership up; a later {@link check} asks for it again, in a new term. */
  async close(): Promise<void> {
    const client = this.#client;
    this.#lose(client);
    await client?.end().catch(() => undefined);
  }

  async #winLock(client: pg.Client): Promise<boolean> {
    const { rows } = await client.query<{ won: boolean }>('SELECT pg_try_advisory_lock($1, $2) AS won', [
      ...LEADER_LOCK,
    ]);
    return rows[0]?.won === true;
  }

  /** A lock without a term is no leadership: it goes back when the term could not be begun. */
  async #beginTerm(client: pg.Client): Promise<void> {
    try {
      const { rows } = await client.query<{ term: number }>(BEGIN_TERM, [SCHEDULER, this.#options.holder]);
      if (this.#client === client) this.#term = rows[0]?.term;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async #connect(): Promise<pg.Client> {
    if (this.#client !== undefined) return this.#client;
    const { connection, idleMs } = this.#options;
    const client = createClient(connection, { idleSessionMs: idleMs });
    client.on('error', () => this.#lose(client));
    client.on('end', () => this.#lose(client));
    await client.connect();
    this.#client = client;
    return client;
  }

  #lose(client: pg.Client | undefined): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#term = undefined;
  }
}
