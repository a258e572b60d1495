import type pg from 'pg';
import { reading } from './database.ts';

const REFRESH_MS = 1_000;
const MOST = 10_000;

/** The node ids that may enrol, for the first time or anew, as they were a moment ago: for the rate limit, which must not ask the database. */
export class AwaitedNodes {
  readonly #pool: pg.Pool;
  #ids: ReadonlySet<string> = new Set();
  #asked = true;
  #timer: NodeJS.Timeout | undefined;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Whether a node is awaited. Being asked is what makes the set worth refreshing. */
  has(nodeId: string): boolean {
    this.#asked = true;
    return this.#ids.has(nodeId);
  }

  /** Marks that somebody enrols. */
  touch(): void {
    this.#asked = true;
  }

  /** Reads the set now and then once a second, as long as anyone enrols. */
  async start(): Promise<void> {
    await this.refresh();
    this.#timer = setInterval(() => void this.refresh(), REFRESH_MS);
  }

  close(): void {
    clearInterval(this.#timer);
  }

  /** Never rejects: while the database is away nobody is enrolled anyway. */
  async refresh(): Promise<void> {
    if (!this.#asked) return;
    this.#asked = false;
    try {
      const { rows } = await reading(() =>
        this.#pool.query<{ node_id: string }>({
          name: 'gateway_awaited',
          text: `SELECT node_id FROM fleet.fleet_nodes
                 WHERE provision_state <> 'failed'
                   AND (status = 'provisioning' OR status <> 'retired' AND armed_secrets <> '[]')
                 ORDER BY requested_at DESC LIMIT ${MOST}`,
        }),
      );
      this.#ids = new Set(rows.map((row) => row.node_id));
    } catch {
      this.#asked = true;
    }
  }
}
