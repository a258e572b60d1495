import { hash } from 'node:crypto';
import { completeJobCommand, expireLeaseCommand, leaseJobCommand } from '../../src/commands/job.ts';
import type { DatabaseState } from '../../src/domain/database/state.ts';
import type { DecisionTime } from '../../src/domain/decision.ts';
import type { DeploymentState, InstanceState } from '../../src/domain/deployment/state.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { RouteState } from '../../src/domain/ingress/state.ts';
import type { Report } from '../../src/domain/job/purpose.ts';
import type { JobState } from '../../src/domain/job/state.ts';
import type { NodeState } from '../../src/domain/node/state.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import { admitted, make, START } from '../support/events.ts';
import { MemoryLog } from '../support/memory-log.ts';
import { Random } from '../support/random.ts';

const LEASE_MS = 60_000;
const KINDS = ['ensure_application', 'teardown_application', 'publish_ingress', 'ensure_database', 'diagnose_host'];

/** A lease as its agent remembers it, also after it was fenced from it: agents come back. */
export interface Held {
  readonly jobId: string;
  readonly nodeId: string;
  readonly kind: string;
  readonly token: string;
}

/** A command that was decided, for a replay elsewhere. */
export interface Given {
  readonly definition: CommandDefinition<never, never>;
  readonly command: unknown;
}

/**
 * A fleet in memory: the real decisions on the real folds, agents that lease and report, and a clock. Ids and choices follow from a seed,
 * so a script makes the same history every time.
 */
export class World {
  readonly log = new MemoryLog();
  readonly #random: Random;
  readonly held: Held[] = [];
  readonly fingerprints = new Map<string, string>();
  now = START;
  /** The clock of silence. */
  heardMs = 1_000_000;

  constructor(seed: number) {
    this.#random = new Random(seed);
  }

  /** A UUID of its own. */
  newId(): string {
    return this.#random.uuid();
  }

  /** A node that is active, admitted and was just heard. */
  addNode(index: number, pool: 'application' | 'database', ingress: boolean): string {
    const node_id = this.newId();
    const fingerprint = hash('sha256', node_id);
    const serial = fingerprint.slice(0, 32);
    const own: FleetEvent[] = admitted.map(({ type, data }) => {
      const named = { ...data, ...('node_id' in data ? { node_id } : {}) };
      const certified = 'certificate_id' in data ? { certificate_id: serial } : {};
      const printed = 'fingerprint' in data ? { fingerprint } : {};
      const called = type === 'node_provisioning_requested' ? { name: `n${index}`, pool } : {};
      return { type, data: { ...named, ...certified, ...printed, ...called } } as FleetEvent;
    });
    const capacity = make('node_capacity_recorded', { node_id, cpu_millis: 1_000, memory_mb: 1_000, disk_gb: 10 });
    const facts = make('node_host_facts_changed', {
      node_id,
      runtime: 'process',
      ingress: ingress ? 'embedded' : null,
    });
    this.log.record(
      [...own, capacity, facts].map((event) => ({ stream: nodeStream(node_id), event })),
      this.now,
    );
    this.fingerprints.set(node_id, fingerprint);
    this.hear(node_id);
    return node_id;
  }

  /** A gateway writes that it heard a node. */
  hear(node_id: string): void {
    this.log.rows.putLiveness({ node_id, last_seen_at: this.now, heard_ms: this.heardMs, data_disk_free_gb: null });
  }

  /** Time passes, and every gateway hears what there is to hear. */
  pass(ms: number): void {
    this.now += ms;
    this.heardMs += ms;
    this.log.rows.putScheduler({ id: 'fleet', term: 1, holder: 'model', heard_ms: this.heardMs });
  }

  /** Decides a command; true when it was accepted. */
  async give<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<boolean> {
    const decision = await this.log.decide(definition, command, this.#time());
    return !('refusal' in decision);
  }

  /** As {@link give}, for commands of the scheduler. */
  schedule<C, S>(definition: CommandDefinition<C, S>, command: C): Promise<boolean> {
    return this.give(definition, command);
  }

  /** The agent of a node asks for work, and keeps the lease that it is given. */
  async lease(node_id: string): Promise<Held | undefined> {
    const token = hash('sha256', this.newId());
    const decision = await this.log.decide(
      leaseJobCommand,
      {
        fingerprint: this.#fingerprint(node_id),
        request_id: this.newId(),
        kinds: KINDS,
        token_sha256: token,
        lease_ms: LEASE_MS,
      },
      this.#time(),
    );
    if ('refusal' in decision || typeof decision.reply['job_id'] !== 'string') return undefined;
    const held = { jobId: decision.reply['job_id'], nodeId: node_id, kind: String(decision.reply['kind']), token };
    this.held.push(held);
    return held;
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
      report: reportOf(kind),
    });
  }

  /** The scheduler takes back a lease that has run out. */
  expire({ jobId }: Held): Promise<boolean> {
    return this.give(expireLeaseCommand, { job_id: jobId });
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

  #fingerprint(nodeId: string): string {
    return found(this.fingerprints.get(nodeId), nodeId);
  }

  #time(): DecisionTime {
    return { now: this.now, at: this.now };
  }
}

function reportOf(kind: string): Report {
  switch (kind) {
    case 'ensure_application':
      return { kind: 'ready', address: '10.0.0.1', port: 40_000 };
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
