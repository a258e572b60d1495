import type { RowOf, TableName } from '../../projections/registry.ts';
import type { Body, Decision, Reply } from '../../src/domain/decision.ts';
import type { FleetEvent, NewEvent } from '../../src/domain/event/catalogue.ts';
import type { EventMetadata } from '../../src/domain/event/recorded.ts';
import type { LeaseGuard, StoredPayload } from '../../src/domain/job/state.ts';
import type { RefusalCode } from '../../src/domain/refusal.ts';
import type { Refusal } from '../../src/domain/result.ts';
import { SCHEDULER } from '../../src/domain/scheduler/state.ts';
import {
  CA_STREAM,
  databaseStream,
  deploymentStream,
  FLEET_STREAM,
  jobStream,
  LOG_STREAM,
  nodeStream,
  poolStream,
} from '../../src/domain/stream.ts';
import { GENESIS_HASH } from '../../src/log/chain.ts';
import { seal } from '../../src/log/codec.ts';
import type { LogHead } from '../../src/log/event-log.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import { START } from './events.ts';
import { MemoryRows } from './memory-rows.ts';

/** What a test's events are recorded with. */
export const METADATA: EventMetadata = {
  actor: { kind: 'operator', id: 'ada@ops', database_user: 'pushleft_operator', client_address: null },
  command_id: '40000000-0000-4000-8000-000000000001',
  correlation_id: '50000000-0000-4000-8000-000000000001',
  program_version: '0.1.0',
  epoch: 1,
};

/** What the clock of silence shows. */
const HEARD_MS = 100_000_000;

/**
 * A history, and what a command would make of it:
 * `expect(await given(...enrolled).after(1_000).when(admitNodeCommand, { node_id: NODE })).toEqual([sample.node_admitted])`.
 * Events are sealed and folded by the real codec and the real projections; the command's own `load` reads what came out.
 */
export function given(...events: readonly FleetEvent[]): Given {
  return new Given().and(...events);
}

/** The refusal that a test expects. */
export function refusal(code: RefusalCode, details: Refusal['details'] = {}): Refusal {
  return { code, details };
}

/** Times are ms. `now` is both clocks of a decision, unless {@link Given.recordingAt} puts them apart. */
class Given {
  readonly #rows = new MemoryRows();
  #head: LogHead = { position: 0, hash: GENESIS_HASH, at: 0 };
  #now = START;
  #at: number | undefined;

  /** More events, recorded now. */
  and(...events: readonly FleetEvent[]): this {
    this.#record(events.map((event) => ({ stream: streamOf(event), event })));
    return this;
  }

  /** Time passes. */
  after(ms: number): this {
    this.#now += ms;
    return this;
  }

  /** The database's clock shows this. */
  at(ms: number): this {
    this.#now = ms;
    return this;
  }

  /** The log's time differs from the database's clock. */
  recordingAt(ms: number): this {
    this.#at = ms;
    return this;
  }

  /** A gateway flushes that it heard a node now. */
  heard(nodeId: string): this {
    this.#rows.putLiveness({ node_id: nodeId, last_seen_at: this.#now, heard_ms: null, data_disk_free_gb: null });
    return this;
  }

  /** By the clock of silence the node could have been heard for so long, and was not. */
  silentFor(nodeId: string, ms: number): this {
    this.#rows.putScheduler({ id: SCHEDULER, term: 1, holder: 'scheduler@test', heard_ms: HEARD_MS });
    this.#rows.putLiveness({
      node_id: nodeId,
      last_seen_at: this.#now - ms,
      heard_ms: HEARD_MS - ms,
      data_disk_free_gb: null,
    });
    return this;
  }

  /** A gateway says now which CAs it trusts. */
  beacon(program: string, ...trusted_ca_sha256s: readonly string[]): this {
    this.#rows.putBeacon({ program, kind: 'gateway', trusted_ca_sha256s, beacon_at: this.#now });
    return this;
  }

  /** A heartbeat moves a lease's end, without an event. */
  heartbeat(lease: LeaseGuard): this {
    this.#rows.putLease(lease);
    return this;
  }

  /** Telemetry was lost, and a lease's guard with it. */
  withoutLease(jobId: string): this {
    this.#rows.remove('job_leases', jobId);
    return this;
  }

  /** Telemetry was lost or erased, and a job's payload with it. */
  withoutPayload(jobId: string): this {
    this.#rows.remove('job_payloads', jobId);
    return this;
  }

  /** A job's payload is another than its event says. */
  payload(row: StoredPayload): this {
    this.#rows.putPayload(row);
    return this;
  }

  /** A row as it is now. */
  row<T extends TableName>(table: T, key: string): Promise<RowOf<T> | undefined> {
    return this.#rows.get(table, key);
  }

  /** The command takes place now: the events that it appends, or its refusal. */
  async when<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<readonly FleetEvent[] | Refusal> {
    const decision = await this.#decide(definition, command);
    return 'refusal' in decision ? decision.refusal : decision.events.map(({ event }) => event);
  }

  /** The command takes place now: what it answers beside its events, or its refusal. */
  async reply<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<Reply | Refusal> {
    const decision = await this.#decide(definition, command);
    return 'refusal' in decision ? decision.refusal : decision.reply;
  }

  /** The command takes place now: the bodies that it stores outside the log. */
  async bodies<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<readonly Body[]> {
    const decision = await this.#decide(definition, command);
    return 'refusal' in decision ? [] : decision.bodies;
  }

  /** The command is refused now: the events that say that it was attempted. */
  async recorded<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<readonly FleetEvent[]> {
    const decision = await this.#decide(definition, command);
    return 'refusal' in decision ? (decision.record ?? []).map(({ event }) => event) : [];
  }

  async #decide<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<Decision> {
    const state = await definition.load(this.#rows, command);
    const decision = definition.decide(command, state, { now: this.#now, at: this.#at ?? this.#now });
    this.#record('refusal' in decision ? (decision.record ?? []) : decision.events);
    return decision;
  }

  #record(events: readonly NewEvent[]): void {
    for (const { stream, event } of events) {
      if (stream !== streamOf(event)) throw new Error(`${event.type} was decided for stream ${stream}`);
    }
    for (const { event, hash } of seal(this.#head, events, METADATA, this.#now)) {
      this.#rows.apply(event);
      this.#head = { position: event.position, hash, at: event.at };
    }
  }
}

/** The stream that an event belongs to, told from its data alone: a second opinion on what decisions say. */
function streamOf({ type, data }: FleetEvent): string {
  if (type.startsWith('ca_') || type === 'gateway_certificate_issued') return CA_STREAM;
  if (type.startsWith('log_')) return LOG_STREAM;
  if (type.startsWith('node_losses_')) return FLEET_STREAM;
  if (type.startsWith('node_loss_') && 'pool' in data && data.pool !== null) return poolStream(data.pool);
  if ('deployment_id' in data && !type.startsWith('node_')) return deploymentStream(data.deployment_id);
  if ('database_id' in data) return databaseStream(data.database_id);
  if (type.startsWith('job_') && 'job_id' in data && data.job_id !== null) return jobStream(data.job_id);
  if (type.startsWith('pool_') && 'rules_sha256' in data) return poolStream(data.pool);
  if ('node_id' in data && data.node_id !== null) return nodeStream(data.node_id);
  throw new Error(`${type} belongs to no stream`);
}
