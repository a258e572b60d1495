import type pg from 'pg';
import type { Logger } from 'pino';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import { UnavailableError } from '../transactor/command.ts';
import { asUnavailable } from './database.ts';
import { every, type Ticker } from './ticker.ts';

const FLUSH_MS = 1_000;
/** A gateway that hears nobody tries at every second flush whether it can be reached. */
const FLUSHES_PER_PROBE = 2;
/** Well before the clock of silence stops to wait for a gateway (30 s), and longer than a statement may take. */
const STALLED_MS = 15_000;
/** More nodes than this are not kept between two flushes; those that are not are heard again with their next request. */
const MOST_HEARD = 100_000;

/** What was last heard of a node: when (ms, the database's clock), and the free disk it reported, if it did. */
interface Heard {
  readonly at: number;
  readonly dataDiskFreeGb: number | null;
}

/** The gateway's beacon: what it says of itself with every flush, and how it finds out whether it can be reached. */
export interface Beacon {
  readonly program: string;
  readonly details: () => object;
  /** Whether a handshake through the gateway's public address goes through. Never rejects. */
  readonly probe: () => Promise<boolean>;
}

/** When a gateway writes what it heard, and the monotonic clock (ms) by which it finds out that it could not for too long. */
export interface LivenessTime {
  readonly ticker: Ticker;
  readonly now: () => number;
}

const REAL_TIME: LivenessTime = { ticker: every(FLUSH_MS), now: () => performance.now() };

/** A node was heard when the clock of silence showed what it shows now: also after that clock was put back. */
const FLUSH = `
  WITH heard AS (
    INSERT INTO telemetry.node_liveness AS known (node_id, last_seen_at, data_disk_free_gb, heard_ms)
    SELECT node_id, last_seen_at, data_disk_free_gb, (SELECT heard_ms FROM telemetry.scheduler WHERE id = '${SCHEDULER}')
    FROM unnest($1::text[], $2::timestamptz[], $3::integer[]) AS nodes (node_id, last_seen_at, data_disk_free_gb)
    ON CONFLICT (node_id) DO UPDATE
    SET last_seen_at = greatest(known.last_seen_at, excluded.last_seen_at),
        data_disk_free_gb = coalesce(excluded.data_disk_free_gb, known.data_disk_free_gb),
        heard_ms = excluded.heard_ms
  )
  INSERT INTO telemetry.programs (program, kind, details, started_at, beacon_at)
  VALUES ($4, 'gateway', $5, clock_timestamp(), clock_timestamp())
  ON CONFLICT (program) DO UPDATE SET details = excluded.details, beacon_at = excluded.beacon_at`;

/**
 * Collects when nodes were heard and writes it once a second, together with the gateway's beacon: one statement, so that a beacon means
 * "everything I heard until now is written" (DESIGN §5). What could not be written is kept for the next flush. The beacon's `reached`
 * counts flushes since whose predecessor the gateway was reached, by an agent or by its own probe: only those say that who was not
 * heard could have been.
 */
export class Liveness {
  readonly #pool: pg.Pool;
  readonly #beacon: Beacon;
  readonly #log: Logger;
  readonly #time: LivenessTime;
  #heard = new Map<string, Heard>();
  #ticking: Disposable | undefined;
  #ticks = 0;
  /** Everything that was heard until then is written. */
  #writtenUntil: number;
  #flushing: Promise<boolean> | undefined;
  #next: Promise<boolean> | undefined;
  #lastFlushAt: number | null = null;
  #failing = false;
  #reached = 0;
  #probed = false;
  #probing: Promise<void> | undefined;

  constructor(pool: pg.Pool, beacon: Beacon, log: Logger, time: LivenessTime = REAL_TIME) {
    this.#pool = pool;
    this.#beacon = beacon;
    this.#log = log;
    this.#time = time;
    this.#writtenUntil = time.now();
  }

  /** When the last flush succeeded (ms, this process's clock); null before the first. */
  get lastFlushAt(): number | null {
    return this.#lastFlushAt;
  }

  /**
   * Whether what is heard has not been written for so long that the clock of silence will soon go on without this gateway. Whoever talks
   * to it would then count as silent, and had better go to another one.
   */
  get stalled(): boolean {
    return this.#time.now() - this.#writtenUntil > STALLED_MS;
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
    this.#ticking = this.#time.ticker(() => this.#tick());
  }

  /** Stops and writes what is left: waits for the flush that is under way and for one more, each as long as a statement may take. */
  async close(): Promise<void> {
    this.#ticking?.[Symbol.dispose]();
    await this.#probing;
    await this.#flushing;
    await this.flush();
  }

  /**
   * Writes what was heard; false when that failed. While a flush is under way there is no second: during an outage they would pile up, and
   * what is heard meanwhile is in the next. Never rejects: a failure is logged when it begins and when it ends.
   */
  flush(): Promise<boolean> {
    this.#flushing ??= this.#write().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  /** Resolves when what was heard until now is written. Rejects with {@link UnavailableError} when it cannot be. */
  async written(): Promise<void> {
    this.#next ??= (this.#flushing ?? Promise.resolve()).then(() => {
      this.#next = undefined;
      return this.flush();
    });
    if (!(await this.#next)) throw new UnavailableError('database', 'the database does not answer');
  }

  /** Writes what was heard. Where that is nobody, begins to find out whether anybody could have been. */
  async #tick(): Promise<void> {
    this.#ticks += 1;
    if (this.#heard.size === 0 && this.#ticks % FLUSHES_PER_PROBE === 0) this.#probing ??= this.#noteReached();
    await Promise.all([this.flush(), this.#probing]);
  }

  async #noteReached(): Promise<void> {
    const reached = await this.#beacon.probe();
    this.#probed ||= reached;
    this.#probing = undefined;
  }

  async #write(): Promise<boolean> {
    const [heard, probed, begunAt] = [this.#heard, this.#probed, this.#time.now()];
    this.#heard = new Map();
    this.#probed = false;
    const reached = this.#reached + (heard.size > 0 || probed ? 1 : 0);
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
          JSON.stringify({ ...this.#beacon.details(), reached }),
        ],
      });
      this.#reached = reached;
      this.#lastFlushAt = Date.now();
      this.#writtenUntil = begunAt;
      if (this.#failing) this.#log.info('liveness is written again');
      this.#failing = false;
      return true;
    } catch (error) {
      for (const [nodeId, node] of heard) this.heard(nodeId, node.at, node.dataDiskFreeGb);
      if (!this.#failing) this.#log.warn({ err: asUnavailable(error) }, 'liveness is not written');
      this.#failing = true;
      return false;
    }
  }
}
