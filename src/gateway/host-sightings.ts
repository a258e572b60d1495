import type pg from 'pg';
import type { Logger } from 'pino';
import { recordConflictCommand } from '../commands/certificate.ts';
import type { Transactor } from '../transactor/transactor.ts';
import { asUnavailable } from './database.ts';

/** A host that asked for a lease in a node's name. `at` is when (ms, the database's clock). */
export interface Sighting {
  readonly nodeId: string;
  readonly bootId: string;
  readonly address: string;
  readonly fingerprint: string;
  readonly at: number;
}

const FLUSH_MS = 1_000;
/** A host that nothing has changed about is written this often. */
const EVERY_MS = 30_000;
/** A host that is still heard so long after another one first was is not that one before its reboot. */
const OVERLAP_MS = 5_000;
/** Hosts that were not heard for this long are forgotten. */
const FORGET_DAYS = 7;
const MOST_PENDING = 100_000;

const WRITE = `
  INSERT INTO telemetry.node_hosts AS known (node_id, boot_id, address, fingerprint, first_seen_at, last_seen_at)
  SELECT node_id, boot_id, address, fingerprint, first_seen_at, last_seen_at FROM unnest($1::text[], $2::text[], $3::text[],
    $4::text[], $5::timestamptz[], $6::timestamptz[]) AS seen (node_id, boot_id, address, fingerprint, first_seen_at, last_seen_at)
  ON CONFLICT (node_id, boot_id) DO UPDATE
  SET address = excluded.address, fingerprint = excluded.fingerprint,
      first_seen_at = least(known.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(known.last_seen_at, excluded.last_seen_at)`;

/** The pair of hosts of a node of which the one that was there first is still heard after the other had come. */
const CONFLICTS = `
  SELECT DISTINCT ON (earlier.node_id) earlier.node_id, later.fingerprint,
         earlier.boot_id AS earlier_boot_id, earlier.address AS earlier_address,
         later.boot_id AS later_boot_id, later.address AS later_address
  FROM telemetry.node_hosts AS earlier JOIN telemetry.node_hosts AS later USING (node_id)
  WHERE node_id = ANY($1::text[]) AND earlier.boot_id <> later.boot_id
    AND earlier.first_seen_at <= later.first_seen_at
    AND earlier.last_seen_at > later.first_seen_at + $2 * interval '1 millisecond'
    AND earlier.last_seen_at > clock_timestamp() - interval '10 minutes'
    AND later.last_seen_at > clock_timestamp() - interval '10 minutes'
  ORDER BY earlier.node_id, later.last_seen_at DESC`;

interface ConflictRow {
  readonly node_id: string;
  readonly fingerprint: string;
  readonly earlier_boot_id: string;
  readonly earlier_address: string;
  readonly later_boot_id: string;
  readonly later_address: string;
}

/**
 * Notices two hosts that use one identity in turn. A reboot changes the boot id once and for all, so a boot id that is heard again after
 * another one had come is a second host. What is heard is shared by all gateways through a table of telemetry, since the two hosts may
 * be connected to different ones. Only the beginning of a request counts: one that waits outlives the host that made it.
 */
export class HostSightings {
  readonly #pool: pg.Pool;
  readonly #transactor: Pick<Transactor, 'execute'>;
  readonly #gatewayId: string;
  readonly #log: Logger;
  #pending = new Map<string, Sighting & { readonly firstAt: number }>();
  readonly #written = new Map<string, { readonly bootId: string; readonly at: number }>();
  #timer: NodeJS.Timeout | undefined;
  #flushing: Promise<void> | undefined;

  constructor(pool: pg.Pool, transactor: Pick<Transactor, 'execute'>, gatewayId: string, log: Logger) {
    this.#pool = pool;
    this.#transactor = transactor;
    this.#gatewayId = gatewayId;
    this.#log = log;
  }

  /** A host asks for a lease. Cheap: what is as it was is not written again for a while. */
  seen(sighting: Sighting): void {
    const { nodeId, bootId, at } = sighting;
    const written = this.#written.get(nodeId);
    if (written?.bootId === bootId && at - written.at < EVERY_MS) return;
    if (this.#pending.size >= MOST_PENDING) return;
    const key = `${nodeId} ${bootId}`;
    this.#pending.set(key, { ...sighting, firstAt: this.#pending.get(key)?.firstAt ?? at });
  }

  /** Writes once a second from now on. */
  start(): void {
    this.#timer = setInterval(() => void this.flush(), FLUSH_MS);
  }

  /** Stops, after what is under way. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#flushing;
  }

  /** Writes what was seen and records conflicts. Never rejects; what could not be written is seen again soon. */
  flush(): Promise<void> {
    this.#flushing ??= this.#write()
      .catch((error: unknown) => this.#log.warn({ err: asUnavailable(error) }, 'the hosts of nodes are not written'))
      .finally(() => {
        this.#flushing = undefined;
      });
    return this.#flushing;
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const pending = [...this.#pending].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sighting]) => sighting);
    this.#pending = new Map();
    const iso = (ms: number) => new Date(ms).toISOString();
    await this.#pool.query({
      name: 'gateway_write_hosts',
      text: WRITE,
      values: [
        pending.map((s) => s.nodeId),
        pending.map((s) => s.bootId),
        pending.map((s) => s.address),
        pending.map((s) => s.fingerprint),
        pending.map((s) => iso(s.firstAt)),
        pending.map((s) => iso(s.at)),
      ],
    });
    for (const { nodeId, bootId, at } of pending) this.#written.set(nodeId, { bootId, at });
    if (this.#written.size > MOST_PENDING) this.#written.clear();
    await this.#recordConflicts([...new Set(pending.map((s) => s.nodeId))]);
  }

  async #recordConflicts(nodeIds: readonly string[]): Promise<void> {
    const found = await this.#pool.query<ConflictRow>({
      name: 'gateway_host_conflicts',
      text: CONFLICTS,
      values: [nodeIds, OVERLAP_MS],
    });
    for (const row of found.rows) {
      const hosts = {
        boot_ids: [row.earlier_boot_id, row.later_boot_id],
        addresses: [row.earlier_address, row.later_address],
      };
      const outcome = await this.#transactor.execute(
        recordConflictCommand,
        { fingerprint: row.fingerprint, ...hosts },
        { actor: { kind: 'gateway', id: this.#gatewayId } },
      );
      if (outcome.ok && outcome.events.length > 0) {
        this.#log.error({ node: row.node_id, ...hosts }, 'two hosts use the identity of one node');
      }
    }
    await this.#pool.query(
      `DELETE FROM telemetry.node_hosts WHERE last_seen_at < now() - interval '${FORGET_DAYS} days'`,
    );
  }
}
