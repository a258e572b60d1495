import { hash } from 'node:crypto';
import { confirmCleanupCommand } from '../../src/commands/cleanup.ts';
import { createDatabaseCommand } from '../../src/commands/database.ts';
import { completeJobCommand, expireLeaseCommand, leaseJobCommand } from '../../src/commands/job.ts';
import { recoverNodeCommand } from '../../src/commands/sweep.ts';
import { underTerm } from '../../src/commands/term.ts';
import { ensureDatabaseJob } from '../../src/commands/workload-jobs.ts';
import type { DatabaseState } from '../../src/domain/database/state.ts';
import type { Decision } from '../../src/domain/decision.ts';
import type { DeploymentState, InstanceState } from '../../src/domain/deployment/state.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { RouteState } from '../../src/domain/ingress/state.ts';
import type { Report } from '../../src/domain/job/purpose.ts';
import type { JobState } from '../../src/domain/job/state.ts';
import type { NodeLiveness, NodeState } from '../../src/domain/node/state.ts';
import { SCHEDULER, type SchedulerState } from '../../src/domain/scheduler/state.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import { EPOCH } from '../../src/log/epoch.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import { admitted, make } from '../support/events.ts';
import { MemoryLog } from '../support/memory-log.ts';
import { Random } from '../support/random.ts';
import { recordEvents } from '../support/record-events.ts';

const LEASE_MS = 60_000;
const KINDS = ['ensure_application', 'teardown_application', 'publish_ingress', 'ensure_database', 'diagnose_host'];
/** Far ahead of any test run, so that a database whose clock shows today can be told this time (test/model/replay.ts). */
const BEGIN = Date.UTC(2090, 2, 1, 12);

/** A lease as its agent remembers it, also after it was fenced from it: agents come back. */
export interface Held {
  readonly jobId: string;
  readonly nodeId: string;
  readonly kind: string;
  readonly token: string;
}

/** One thing that was done to the fleet, for doing it again elsewhere: a command with its time, or a row of telemetry. */
export type Traced =
  | {
      readonly is: 'command';
      readonly definition: CommandDefinition<unknown, unknown>;
      readonly command: unknown;
      readonly now: number;
    }
  | { readonly is: 'liveness'; readonly row: NodeLiveness }
  | { readonly is: 'scheduler'; readonly row: SchedulerState };

/**
 * A fleet in memory: the real decisions on the real folds, agents that lease and report, and two clocks. Ids and choices follow from a
 * seed, so a script makes the same history every time.
 */
export class World {
  readonly log = new MemoryLog();
  readonly trace: Traced[] = [];
  readonly held: Held[] = [];
  /** Nodes that nobody hears: switched off, or cut off. */
  readonly silent = new Set<string>();
  readonly #random: Random;
  readonly #fingerprints = new Map<string, string>();
  #now = BEGIN;
  /** The clock of silence. */
  #heardMs = 1_000_000;
  #term = 1;

  constructor(seed: number) {
    this.#random = new Random(seed);
    this.lead();
  }

  /** What every clock in the fleet shows, ms. */
  get now(): number {
    return this.#now;
  }

  /** A UUID of its own. */
  newId(): string {
    return this.#random.uuid();
  }

  /** A node that is active, admitted and was just heard. */
  async addNode(index: number, pool: 'application' | 'database', ingress: boolean): Promise<string> {
    const node_id = this.newId();
    const fingerprint = hash('sha256', node_id);
    const serial = fingerprint.slice(0, 32);
    const secret_sha256 = hash('sha256', `secret of ${node_id}`);
    const own: FleetEvent[] = admitted.map(({ type, data }) => {
      const named = { ...data, ...('node_id' in data ? { node_id } : {}) };
      const certified = 'certificate_id' in data ? { certificate_id: serial } : {};
      const printed = 'fingerprint' in data ? { fingerprint } : {};
      const armed = 'secret_sha256' in data ? { secret_sha256 } : {};
      const called = type === 'node_provisioning_requested' ? { name: `n${index}`, pool } : {};
      const lasting = 'not_after' in data ? { not_before: BEGIN, not_after: BEGIN + 1_000 * 24 * 3_600_000 } : {};
      const fresh = 'expires_at' in data ? { expires_at: BEGIN + 900_000 } : {};
      const server = 'server_id' in data ? { server_id: 1_000 + index } : {};
      return {
        type,
        data: { ...named, ...certified, ...printed, ...armed, ...called, ...lasting, ...fresh, ...server },
      } as FleetEvent;
    });
    const capacity = make('node_capacity_recorded', { node_id, cpu_millis: 1_000, memory_mb: 1_000, disk_gb: 10 });
    const facts = make('node_host_facts_changed', {
      node_id,
      runtime: 'process',
      ingress: ingress ? 'embedded' : null,
    });
    const events = [...own, capacity, facts].map((event) => ({ stream: nodeStream(node_id), event }));
    await this.give(recordEvents, { events });
    this.#fingerprints.set(node_id, fingerprint);
    this.hear(node_id);
    return node_id;
  }

  /** A database on a node, small enough for any. */
  async createDatabase(node_id: string): Promise<void> {
    const database_id = this.newId();
    const named = { database_id, node_id, job_id: this.newId(), name: `db-${database_id.slice(0, 8)}` };
    const event = make('database_instance_created', { ...named, cpu_millis: 1, memory_mb: 1, disk_gb: 0 });
    const job = ensureDatabaseJob(event.data.job_id, event.data, EPOCH);
    await this.give(createDatabaseCommand, { database: event.data, job });
  }

  /** A gateway writes that it heard a node. */
  hear(node_id: string): void {
    const row = { node_id, last_seen_at: this.#now, heard_ms: this.#heardMs, data_disk_free_gb: null };
    this.log.rows.putLiveness(row);
    this.trace.push({ is: 'liveness', row });
  }

  /** Time passes, in which every node that is not silent is heard. */
  pass(ms: number): void {
    this.#now += ms;
    this.#heardMs += ms;
    this.#putScheduler();
    for (const { node_id, status } of this.nodes()) {
      if (status !== 'retired' && !this.silent.has(node_id)) this.hear(node_id);
    }
  }

  /** Time passes in which no gateway can be reached: nobody is heard, and the clock of silence stands. */
  outage(ms: number): void {
    this.#now += ms;
  }

  /** Another replica leads from now on. */
  lead(): void {
    this.#term += 1;
    this.#putScheduler();
  }

  /** Decides a command; true when it was accepted. */
  async give<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<boolean> {
    return !('refusal' in (await this.#decide(definition, command)));
  }

  /** As {@link give}, for commands of the scheduler that leads, or of one that led before it: those are refused. */
  async schedule<C, S>(definition: CommandDefinition<C, S>, command: C, deposed = false): Promise<boolean> {
    const term = deposed ? this.#term - 1 : this.#term;
    const accepted = await this.give(underTerm(definition), { ...command, term });
    if (deposed && accepted) throw new Error(`${definition.name} of a term that is over was accepted`);
    return accepted;
  }

  /** The agent of a node asks for work as it asks a gateway: well again if it was unhealthy, done with its cleanup if it is lost. */
  async ask(node_id: string): Promise<Held | undefined> {
    const agent = { fingerprint: this.#fingerprint(node_id) };
    if (this.silent.has(node_id)) return undefined;
    this.hear(node_id);
    if (this.node(node_id).status === 'unhealthy') await this.give(recoverNodeCommand, agent);
    const fenced = this.instances((one) => one.node_id === node_id && one.status === 'lost' && one.cleaned_at === null);
    if (this.node(node_id).status === 'lost' && fenced.length > 0) {
      const instance_ids = fenced.slice(0, 64).map(({ instance_id }) => instance_id);
      await this.give(confirmCleanupCommand, { ...agent, instance_ids });
    }
    return this.#lease(node_id);
  }

  /** The agent of a lease reports what came of its work; true when that was accepted. */
  complete({ jobId, nodeId, kind, token }: Held, succeeds: boolean): Promise<boolean> {
    return this.give(completeJobCommand, {
      fingerprint: this.#fingerprint(nodeId),
      job_id: jobId,
      token_sha256: token,
      outcome: succeeds ? 'succeeded' : 'failed',
      result: '{}',
      result_sha256: hash('sha256', '{}'),
      report: reportOf(kind, this.#isOnce(jobId)),
    });
  }

  /** The scheduler takes back a lease that has run out. */
  expire({ jobId }: Held): Promise<boolean> {
    return this.schedule(expireLeaseCommand, { job_id: jobId });
  }

  nodes(): NodeState[] {
    return [...this.log.rows.rows('fleet_nodes').values()];
  }

  node(nodeId: string): NodeState {
    return found(this.log.rows.rows('fleet_nodes').get(nodeId), nodeId);
  }

  deployments(): DeploymentState[] {
    return [...this.log.rows.rows('deployments').values()];
  }

  deployment(id: string): DeploymentState {
    return found(this.log.rows.rows('deployments').get(id), id);
  }

  instances(which: (instance: InstanceState) => boolean = () => true): InstanceState[] {
    return [...this.log.rows.rows('application_instances').values()].filter(which);
  }

  instance(id: string): InstanceState {
    return found(this.log.rows.rows('application_instances').get(id), id);
  }

  routes(which: (route: RouteState) => boolean = () => true): RouteState[] {
    return [...this.log.rows.rows('ingress_routes').values()].filter(which);
  }

  databases(): DatabaseState[] {
    return [...this.log.rows.rows('database_instances').values()];
  }

  jobs(): JobState[] {
    return [...this.log.rows.rows('jobs').values()];
  }

  async #lease(node_id: string): Promise<Held | undefined> {
    const token = hash('sha256', this.newId());
    const decision = await this.#decide(leaseJobCommand, {
      fingerprint: this.#fingerprint(node_id),
      request_id: this.newId(),
      kinds: KINDS,
      token_sha256: token,
      lease_ms: LEASE_MS,
    });
    if ('refusal' in decision || typeof decision.reply['job_id'] !== 'string') return undefined;
    const held = { jobId: decision.reply['job_id'], nodeId: node_id, kind: String(decision.reply['kind']), token };
    this.held.push(held);
    return held;
  }

  #decide<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<Decision> {
    this.trace.push({
      is: 'command',
      definition: definition as CommandDefinition<unknown, unknown>,
      command,
      now: this.#now,
    });
    return this.log.decide(definition, command, { now: this.#now, at: this.#now });
  }

  #putScheduler(): void {
    const row = { id: SCHEDULER, term: this.#term, holder: 'model', heard_ms: this.#heardMs };
    this.log.rows.putScheduler(row);
    this.trace.push({ is: 'scheduler', row });
  }

  /** Whether a job starts an instance that runs once. */
  #isOnce(jobId: string): boolean {
    const [instance] = this.instances(({ job_id }) => job_id === jobId);
    if (instance === undefined) return false;
    return this.deployment(instance.deployment_id).roles.some(
      ({ role, run }) => role === instance.role && run !== 'service',
    );
  }

  #fingerprint(nodeId: string): string {
    return found(this.#fingerprints.get(nodeId), nodeId);
  }
}

function reportOf(kind: string, once: boolean): Report {
  switch (kind) {
    case 'ensure_application':
      return once ? { kind: 'done' } : { kind: 'ready', address: '10.0.0.1', port: 40_000 };
    case 'teardown_application':
      return { kind: 'removed' };
    case 'publish_ingress':
      return { kind: 'route', serving: true };
    case 'ensure_database':
      return { kind: 'database', address: '10.0.0.1', port: 5_432 };
    default:
      return { kind: 'other' };
  }
}

function found<T>(row: T | undefined, id: string): T {
  if (row === undefined) throw new Error(`there is no ${id}`);
  return row;
}
