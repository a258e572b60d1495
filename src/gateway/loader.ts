import type pg from 'pg';
import { projectionOf } from '../../projections/registry.ts';
import { type Authenticated, authenticate } from '../domain/certificate/authenticate.ts';
import type { CertificateState } from '../domain/certificate/state.ts';
import type { NodeState } from '../domain/node/state.ts';
import type { Result } from '../domain/result.ts';
import { EPOCH } from '../log/epoch.ts';
import type { LogHead } from '../log/event-log.ts';
import { EMPTY_HEAD, HEAD_QUERY } from '../log/postgres/reader.ts';
import { selectByKeys } from '../tables/statements.ts';
import { selectList } from '../tables/values.ts';
import { reading } from './database.ts';
import { SharedRead } from './shared-read.ts';

/**
 * One moment of the database: its clock (ms), the positions of the last event that changes who may speak and of the last one that may
 * give a node work (0: none yet), and where the log ends, as agents are told it.
 */
export interface Tick {
  readonly nowMs: number;
  readonly authorises: number;
  readonly offersWork: number;
  readonly logHead: string;
}

/** Who a connection's certificate speaks for, at a tick that began after it was asked. */
export interface Identification {
  readonly tick: Tick;
  readonly result: Result<Authenticated>;
}

/** Certificate and node as they were when the last authorising event was at `mark`; both absent for a certificate nobody issued. */
interface Known {
  readonly mark: number;
  readonly certificate: CertificateState | undefined;
  readonly node: NodeState | undefined;
}

/** How many certificates are kept in memory (2 KiB each). */
const MOST_KNOWN = 50_000;

const TICK = {
  name: 'gateway_tick',
  text: `
    SELECT clock_timestamp() AS now,
           (SELECT position FROM fleet.fleet_events WHERE authorises ORDER BY position DESC LIMIT 1) AS authorises,
           (SELECT position FROM fleet.fleet_events WHERE offers_work ORDER BY position DESC LIMIT 1) AS offers_work,
           head.position, head.hash
    FROM (VALUES (1)) AS one LEFT JOIN (${HEAD_QUERY}) AS head ON true`,
};

interface TickRow {
  readonly now: number;
  readonly authorises: number | null;
  readonly offers_work: number | null;
  readonly position: number | null;
  readonly hash: string;
}

const CERTIFICATES = `
  SELECT ${selectList(projectionOf('fleet_node_certificates').table)}
  FROM fleet.fleet_node_certificates WHERE fingerprint = ANY($1::text[])`;

/**
 * Authenticates requests with one small query a tick: whether anything that authorises has moved. While it has not, the rows that were
 * read before are still the truth and stay in memory; expiry is compared with the tick's own clock on every request.
 *
 * Why no answer can be older than its question: the tick's statement begins after the request came (SharedRead), and its snapshot shows
 * the last authorising position P. Events and the rows they change are committed together, so the rows of that snapshot are the fold
 * up to P. Kept rows are marked with the P of the tick *before* they were read. They were read later, so they are at least as new as
 * their mark: if an authorising event slipped in between, they show it early and the next tick throws them away, which is harmless. They
 * cannot be older than their mark, so rows marked P at a tick that says P are the rows of its snapshot. Positions never come twice in a
 * log, and a rebuilt schema says the same of the same log.
 */
export class Loader {
  readonly #pool: pg.Pool;
  readonly #known = new Map<string, Known>();
  readonly #identifications: SharedRead<string, Identification>;
  readonly #ticks: SharedRead<undefined, Tick>;
  readonly #observe: (seconds: number) => void;

  /** `observe` is told how long each tick's query took. */
  constructor(pool: pg.Pool, observe: (seconds: number) => void = () => undefined) {
    this.#pool = pool;
    this.#observe = observe;
    this.#identifications = new SharedRead((fingerprints) => this.#identifyAll(fingerprints));
    this.#ticks = new SharedRead(async (asked) => {
      const tick = await this.#readTick();
      return asked.map(() => tick);
    });
  }

  /** Says who presents a certificate. Rejects with UnavailableError when the database does not answer. */
  identify(fingerprint: string): Promise<Identification> {
    return this.#identifications.ask(fingerprint);
  }

  /** Reads the moment alone. */
  tick(): Promise<Tick> {
    return this.#ticks.ask(undefined);
  }

  async #identifyAll(fingerprints: readonly string[]): Promise<Identification[]> {
    const tick = await this.#readTick();
    const known = new Map(fingerprints.map((fingerprint) => [fingerprint, this.#known.get(fingerprint)]));
    const stale = [...known].flatMap(([fingerprint, row]) => (row?.mark === tick.authorises ? [] : [fingerprint]));
    if (stale.length > 0) {
      for (const [fingerprint, row] of await this.#readRows(stale, tick.authorises)) known.set(fingerprint, row);
    }
    return fingerprints.map((fingerprint) => {
      const row = known.get(fingerprint);
      const rows = { node: row?.node, certificate: row?.certificate };
      return { tick, result: authenticate({ fingerprint }, rows, { now: tick.nowMs }) };
    });
  }

  async #readTick(): Promise<Tick> {
    const started = performance.now();
    const { rows } = await reading(() => this.#pool.query<TickRow>(TICK));
    this.#observe((performance.now() - started) / 1_000);
    const [row] = rows;
    if (row === undefined) throw new Error('the database did not tell its clock');
    return {
      nowMs: row.now,
      authorises: row.authorises ?? 0,
      offersWork: row.offers_work ?? 0,
      logHead: describeHead(row.position === null ? EMPTY_HEAD : { position: row.position, hash: row.hash }),
    };
  }

  /** Reads certificates and nodes and keeps them under the position that was seen before. */
  async #readRows(fingerprints: readonly string[], mark: number): Promise<ReadonlyMap<string, Known>> {
    const found = await reading(() =>
      this.#pool.query<CertificateState>({ name: 'gateway_certificates', text: CERTIFICATES, values: [fingerprints] }),
    );
    const nodeIds = [...new Set(found.rows.map((row) => row.node_id))];
    const nodes = await reading(() => this.#pool.query<NodeState>(selectByKeys('fleet_nodes', nodeIds)));
    const certificateOf = new Map(found.rows.map((row) => [row.fingerprint, row]));
    const nodeOf = new Map(nodes.rows.map((row) => [row.node_id, row]));
    const fresh = new Map<string, Known>();
    for (const fingerprint of fingerprints) {
      const certificate = certificateOf.get(fingerprint);
      fresh.set(fingerprint, { mark, certificate, node: nodeOf.get(certificate?.node_id ?? '') });
    }
    for (const [fingerprint, known] of fresh) this.#keep(fingerprint, known);
    return fresh;
  }

  #keep(fingerprint: string, known: Known): void {
    this.#known.delete(fingerprint);
    this.#known.set(fingerprint, known);
    if (this.#known.size <= MOST_KNOWN) return;
    const [oldest] = this.#known.keys();
    if (oldest !== undefined) this.#known.delete(oldest);
  }
}

/** Where the log ends, as agents are told it: epoch, position and half of the chain's hash. */
function describeHead({ position, hash }: Pick<LogHead, 'position' | 'hash'>): string {
  return `${EPOCH}:${position}:${hash.slice(0, 32)}`;
}
