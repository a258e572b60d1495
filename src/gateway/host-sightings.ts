import type pg from 'pg';
import type { Logger } from 'pino';
import { recordConflictCommand } from '../commands/certificate.ts';
import type { Transactor } from '../transactor/transactor.ts';
import { asUnavailable } from './database.ts';
import { conflictAmong, forgetHosts, MOST_HOSTS, recentHosts, type SeenHost, writeHosts } from './hosts-table.ts';

/** A host that asked for a lease in a node's name. `at` is when (ms, the database's clock). */
export interface Sighting {
  readonly nodeId: string;
  readonly bootId: string;
  readonly address: string;
  readonly fingerprint: string;
  readonly at: number;
}

const FLUSH_MS = 1_000;
const FORGET_MS = 10 * 60_000;
/** A host that nothing has changed about is written this often. */
const EVERY_MS = 30_000;
const MOST_NODES = 100_000;

/**
 * Notices two hosts that use one identity in turn. A reboot changes the boot id once and for all, so a boot id that is heard again after
 * another one had come is a second host. What is heard is shared by all gateways through a table of telemetry, since the two hosts may
 * be connected to different ones. Only the beginning of a request counts: one that waits outlives the host that made it. Of a node the
 * newest few hosts are kept, here and in the table: an agent that makes boot ids up costs no more than others.
 */
export class HostSightings {
  readonly #pool: pg.Pool;
  readonly #transactor: Pick<Transactor, 'execute'>;
  readonly #gatewayId: string;
  readonly #log: Logger;
  /** By node, then by boot id, the newest last. */
  #pending = new Map<string, Map<string, SeenHost>>();
  readonly #written = new Map<string, { readonly bootId: string; readonly at: number }>();
  readonly #timers: NodeJS.Timeout[] = [];
  #flushing: Promise<void> | undefined;
  #forgetting: Promise<void> | undefined;

  constructor(pool: pg.Pool, transactor: Pick<Transactor, 'execute'>, gatewayId: string, log: Logger) {
    this.#pool = pool;
    this.#transactor = transactor;
    this.#gatewayId = gatewayId;
    this.#log = log;
  }

  /** A host asks for a lease. Cheap: what is as it was is not written again for a while. */
  seen({ at, ...host }: Sighting): void {
    const { nodeId, bootId } = host;
    const written = this.#written.get(nodeId);
    if (written?.bootId === bootId && at - written.at < EVERY_MS) return;
    const hosts = this.#pending.get(nodeId) ?? new Map<string, SeenHost>();
    if (hosts.size === 0 && this.#pending.size >= MOST_NODES) return;
    this.#pending.set(nodeId, hosts);
    const firstAt = hosts.get(bootId)?.firstAt ?? at;
    hosts.delete(bootId);
    hosts.set(bootId, { ...host, firstAt, lastAt: at });
    for (const oldest of [...hosts.keys()].slice(0, -MOST_HOSTS)) hosts.delete(oldest);
  }

  /** From now on writes once a second and forgets every ten minutes. */
  start(): void {
    this.#timers.push(
      setInterval(() => void this.flush(), FLUSH_MS),
      setInterval(() => void this.forget(), FORGET_MS),
    );
  }

  /** Stops, after what is under way. */
  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all([this.#flushing, this.#forgetting]);
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

  /** Forgets hosts that were not heard for long. Never rejects. */
  forget(): Promise<void> {
    this.#forgetting ??= forgetHosts(this.#pool)
      .catch((error: unknown) => this.#log.warn({ err: asUnavailable(error) }, 'old hosts of nodes are not forgotten'))
      .finally(() => {
        this.#forgetting = undefined;
      });
    return this.#forgetting;
  }

  async #write(): Promise<void> {
    if (this.#pending.size === 0) return;
    const pending = [...this.#pending.values()].flatMap((hosts) => [...hosts.values()]);
    this.#pending = new Map();
    await writeHosts(this.#pool, pending);
    for (const { nodeId, bootId, lastAt } of pending) this.#written.set(nodeId, { bootId, at: lastAt });
    if (this.#written.size > MOST_NODES) this.#written.clear();
    const recent = await recentHosts(this.#pool, [...new Set(pending.map(({ nodeId }) => nodeId))]);
    for (const [nodeId, hosts] of recent) await this.#recordConflict(nodeId, hosts);
  }

  async #recordConflict(nodeId: string, hosts: readonly SeenHost[]): Promise<void> {
    const conflict = conflictAmong(hosts);
    if (conflict === undefined) return;
    const [, { fingerprint }] = conflict;
    const seen = {
      boot_ids: conflict.map(({ bootId }) => bootId),
      addresses: conflict.map(({ address }) => address),
    };
    const outcome = await this.#transactor.execute(
      recordConflictCommand,
      { fingerprint, ...seen },
      { actor: { kind: 'gateway', id: this.#gatewayId } },
    );
    if (outcome.ok && outcome.events.length > 0) {
      this.#log.error({ node: nodeId, ...seen }, 'two hosts use the identity of one node');
    }
  }
}
