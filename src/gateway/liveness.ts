import type pg from 'pg';
import type { Logger } from 'pino';
import { asUnavailable } from './database.ts';

const FLUSH_MS = 1_000;
/** More nodes than this are not kept between two flushes; those that are not are heard again with their next request. */
const MOST_HEARD = 100_000;

/** What was last heard of a node: when (ms, the database's clock), and the free disk it reported, if it did. */
interface Heard {
  readonly at: number;
  readonly dataDiskFreeGb: number | null;
}

/** The gateway's beacon: what it says of itself with every flush. */
export interface Beacon {
  readonly program: string;
  readonly details: () => object;
}

const FLUSH = `
  WITH heard AS (
    INSERT INTO telemetry.node_liveness AS known (node_id, last_seen_at, data_disk_free_gb)
    SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::integer[])
    ON CONFLICT (node_id) DO UPDATE
    SET last_seen_at = greatest(known.last_seen_at, excluded.last_seen_at),
        data_disk_free_gb = coalesce(excluded.data_disk_free_gb, known.data_disk_free_gb)
  )
  INSERT INTO telemetry.programs (program, kind, details, started_at, beacon_at)
  VALUES ($4, 'gateway', $5, clock_timestamp(), clock_timestamp())
  ON CONFLICT (program) DO UPDATE SET details = excluded.details, beacon_at = excluded.beacon_at`;

/**
 * Collects when nodes were heard and writes it once a second, together with the gateway's beacon: one statement, so that a beacon means
 * "everything I heard until now is written" (DESIGN §5). What could not be written is kept for the next flush.
 */
export class Liveness {
  readonly #pool: pg.Pool;
  readonly #beacon: Beacon;
  readonly #log: Logger;
  #heard = new Map<string, Heard>();
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;
  #lastFlushAt: number | null = null;
  #failing = false;

  constructor(pool: pg.Pool, beacon: Beacon, log: Logger) {
    this.#pool = pool;
    this.#beacon = beacon;
    this.#log = log;
  }

  /** When the last flush succeeded (ms, this process's clock); null before the first. */
  get lastFlushAt(): number | null {
    return this.#lastFlushAt;
  }

  /** A node's request was answered 200 or 403. */
  heard(nodeId: string, at: number, dataDiskFreeGb: number | null = null): void {
    if (this.#heard.size >= MOST_HEARD && !this.#heard.has(nodeId)) return;
    const known = this.#heard.get(nodeId);
    const disk = dataDiskFreeGb ?? known?.dataDiskFreeGb ?? null;
    this.#heard.set(nodeId, { at: Math.max(at, known?.at ?? 0), dataDiskFreeGb: disk });
  }

  /** Writes the first beacon and goes on once a second. */
  async start(): Promise<void> {
    await this.flush();
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS);
  }

  /** Stops and writes what is left: waits for the flush that is under way and for one more, each as long as a statement may take. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
    await this.flush();
  }

  /**
   * Writes what was heard. While a flush is under way there is no second: during an outage they would pile up, and what is heard
   * meanwhile is in the next. Never rejects: a failure is logged when it begins and when it ends.
   */
  flush(): Promise<void> {
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #write(): Promise<void> {
    const heard = this.#heard;
    this.#heard = new Map();
    // In the order of the key, so that two gateways never wait for one another's rows crosswise.
    const nodeIds = [...heard.keys()].sort();
    const seen = nodeIds.map((nodeId) => heard.get(nodeId));
    try {
      await this.#pool.query({
        name: 'gateway_flush',
        text: FLUSH,
        values: [
          nodeIds,
          seen.map((node) => new Date(node?.at ?? 0).toISOString()),
          seen.map((node) => node?.dataDiskFreeGb ?? null),
          this.#beacon.program,
          JSON.stringify(this.#beacon.details()),
        ],
      });
      this.#lastFlushAt = Date.now();
      if (this.#failing) this.#log.info('liveness is written again');
      this.#failing = false;
    } catch (error) {
      for (const [nodeId, node] of heard) this.heard(nodeId, node.at, node.dataDiskFreeGb);
      if (!this.#failing) this.#log.warn({ err: asUnavailable(error) }, 'liveness is not written');
      this.#failing = true;
    }
  }
}
