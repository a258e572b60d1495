import { completeJobCommand, expireLeaseCommand, leaseJobCommand, queueJobCommand } from '../../src/commands/job.ts';
import { admitNodeCommand, failProvisioningCommand, retryProvisioningCommand } from '../../src/commands/node.ts';
import type { EventData, EventType, FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { LeaseJob } from '../../src/domain/job/lease.ts';
import type { NodeState } from '../../src/domain/node/state.ts';
import { SCHEDULER } from '../../src/domain/scheduler/state.ts';
import type { MemoryRows } from './memory-rows.ts';
import type { Random } from './random.ts';
import {
  type Authorized,
  arm,
  armAgain,
  conflict,
  enroll,
  type Held,
  renew,
  revoke,
  sign,
  use,
} from './random-certificates.ts';
import { incident } from './random-incidents.ts';
import {
  changeStatus,
  convergeFirewall,
  deleteServer,
  type Order,
  order,
  recordCapacity,
  recordRunning,
  recordServer,
  reportFacts,
  requestNode,
  signCheckpoint,
} from './random-orders.ts';
import { RandomRotation } from './random-rotation.ts';
import { RandomWorkloads, reportOf, WORKLOAD_KINDS } from './random-workloads.ts';

/** Nodes that live at a time; one that is retired makes room for another. */
const NODES = 24;
/** At most so many jobs wait at a time. */
const QUEUE = 50;
const KINDS = ['diagnose_host', 'collect_garbage'];
const ALL_KINDS = [...KINDS, ...WORKLOAD_KINDS];

type Leased = EventData<'job_leased'>;

/**
 * Gives the commands of operators, agents and scheduler, at random but mostly to the point, by what it observes of the log. Some come
 * out of order, are repeated or carry what is no longer valid: most are accepted, the others refused.
 */
export class RandomFleet {
  readonly #random: Random;
  readonly #rows: MemoryRows;
  #nodes: readonly string[] = [];
  readonly #rotation: RandomRotation;
  readonly #workloads: RandomWorkloads;
  readonly #unsigned = new Map<string, Authorized>();
  /** By node, the newest last. */
  readonly #held = new Map<string, readonly Held[]>();
  #lastRenewal: Order | undefined;
  readonly #running = new Map<string, Leased>();
  #lastEnded: Leased | undefined;
  #lastRequest: LeaseJob | undefined;
  #waiting = 0;

  /** `rows` is kept up to date by the caller; the fleet itself writes no more than when a node was heard. */
  constructor(random: Random, rows: MemoryRows) {
    this.#random = random;
    this.#rows = rows;
    this.#rotation = new RandomRotation(random, rows);
    this.#workloads = new RandomWorkloads(random, rows);
  }

  /** The next command, given at a time (ms). */
  next(now: number): Order {
    const random = this.#random;
    const node = this.#rows.rows('fleet_nodes').get(random.pick(this.#nodes) ?? '');
    if (node === undefined || (this.#nodes.length < NODES && random.percent(10))) return requestNode(this.#random);
    if (random.percent(1)) return random.percent(80) ? convergeFirewall(random) : signCheckpoint(random, now);
    if (random.percent(2)) return this.#rotation.next(now);
    if (random.percent(1)) return incident(random, this.#rows);
    const workload = random.percent(25) ? this.#workloads.next() : undefined;
    if (workload !== undefined) return workload;
    if (node.status === 'provisioning' || random.percent(3)) return this.#onNode(node, now);
    const held = this.#held.get(node.node_id)?.at(-1);
    if (held === undefined || held.not_after <= now) return this.#withoutCertificate(node, now);
    this.#rows.putScheduler({ id: SCHEDULER, term: 1, holder: 'history', heard_ms: now });
    this.#rows.putLiveness({ node_id: node.node_id, last_seen_at: now, heard_ms: now, data_disk_free_gb: null });
    return this.#onCertificate(node, held, now) ?? this.#onJobs(node, now);
  }

  /** Learns from an event what there is to be done. All that is not in {@link RandomFleet.#learns} is looked up in the folds when it is needed. */
  observe(event: FleetEvent): void {
    const learn = this.#learns[event.type] as ((data: FleetEvent['data']) => void) | undefined;
    learn?.(event.data);
  }

  readonly #learns: { readonly [T in EventType]?: (data: EventData<T>) => void } = {
    node_provisioning_requested: ({ node_id }) => {
      this.#nodes = [...this.#nodes, node_id];
    },
    node_retired: ({ node_id }) => {
      this.#nodes = this.#nodes.filter((id) => id !== node_id);
    },
    certificate_authorized: (data) => {
      this.#unsigned.set(data.node_id, data);
    },
    certificate_issued: (data) => {
      const authorized = this.#unsigned.get(data.node_id);
      this.#unsigned.delete(data.node_id);
      if (authorized?.certificate_id !== data.certificate_id) return;
      const held = { ...authorized, fingerprint: data.fingerprint, used: false };
      this.#held.set(data.node_id, [...(this.#held.get(data.node_id) ?? []), held]);
    },
    certificate_first_used: (data) =>
      this.#changeHeld(data.node_id, (c) => (c.fingerprint === data.fingerprint ? { ...c, used: true } : c)),
    certificates_revoked: (data) =>
      this.#changeHeld(data.node_id, (c) => (data.certificate_ids.includes(c.certificate_id) ? [] : c)),
    ca_rotation_completed: (data) => {
      for (const nodeId of this.#held.keys()) {
        this.#changeHeld(nodeId, (c) => (data.revoked_certificate_ids.includes(c.certificate_id) ? [] : c));
      }
    },
    job_queued: () => {
      this.#waiting += 1;
    },
    job_leased: (data) => {
      if (!data.reissued) this.#waiting -= 1;
      this.#running.set(data.job_id, data);
    },
    job_lease_expired: ({ job_id }) => this.#waitsAgain(job_id),
    job_returned: ({ job_id }) => this.#waitsAgain(job_id),
    job_failed: ({ job_id, reason }) => {
      if (reason === 'attempts_exhausted') this.#waiting -= 1;
      this.#end(job_id);
    },
    job_completed: ({ job_id }) => this.#end(job_id),
  };

  #waitsAgain(jobId: string): void {
    this.#waiting += 1;
    this.#end(jobId);
  }

  #changeHeld(nodeId: string, change: (held: Held) => Held | readonly Held[]): void {
    this.#held.set(nodeId, (this.#held.get(nodeId) ?? []).flatMap(change));
  }

  #end(jobId: string): void {
    this.#lastEnded = this.#running.get(jobId) ?? this.#lastEnded;
    this.#running.delete(jobId);
  }

  /** A step of a node's life: mostly the one that is due, now and then another. */
  #onNode(node: NodeState, now: number): Order {
    const { node_id } = node;
    const unsigned = this.#unsigned.get(node_id);
    if (this.#random.percent(10)) return this.#outOfOrder(node, now);
    if (node.provision_state === 'failed') {
      return this.#random.percent(50) ? order(retryProvisioningCommand, { node_id }) : deleteServer(node);
    }
    if (node.status === 'active' && !node.schedulable) return order(admitNodeCommand, { node_id });
    if (node.status !== 'provisioning') {
      return this.#random.percent(80)
        ? reportFacts(this.#random, this.#fingerprintOf(node.node_id))
        : changeStatus(this.#random, node);
    }
    if (unsigned !== undefined && (unsigned.secret_expires_at ?? 0) > now) return sign(this.#random, unsigned);
    if (node.cpu_millis === null) return recordCapacity(this.#random, node);
    if (node.armed_secrets.length === 0 && unsigned === undefined) return arm(this.#random, node, this.#rotation.ca);
    if (node.server_id === null) return recordServer(this.#random, node);
    if (node.provision_state !== 'awaiting_enrollment') return recordRunning(this.#random, node);
    const lasting = node.armed_secrets.some(({ expires_at }) => expires_at > now);
    return lasting ? enroll(this.#random, node, this.#rotation.ca, now) : order(failProvisioningCommand, { node_id });
  }

  #outOfOrder(node: NodeState, now: number): Order {
    const { node_id } = node;
    const random = this.#random;
    const steps: readonly (() => Order)[] = [
      () => recordCapacity(this.#random, node),
      () => arm(this.#random, node, this.#rotation.ca),
      () => armAgain(this.#random, node, this.#rotation.ca),
      () => recordServer(this.#random, node),
      () => recordRunning(this.#random, node),
      () => enroll(this.#random, node, this.#rotation.ca, now),
      () => deleteServer(node),
      () => reportFacts(this.#random, this.#fingerprintOf(node.node_id)),
      () => order(failProvisioningCommand, { node_id }),
      () => order(retryProvisioningCommand, { node_id }),
      () => order(admitNodeCommand, { node_id }),
      () => revoke(this.#random, node, this.#held.get(node_id)?.at(-1)),
    ];
    return (random.pick(steps) ?? (() => requestNode(this.#random)))();
  }

  /** A node that cannot lease: it is enrolled anew, or it goes. */
  #withoutCertificate(node: NodeState, now: number): Order {
    const random = this.#random;
    const unsigned = this.#unsigned.get(node.node_id);
    if (unsigned !== undefined && random.percent(50)) return sign(random, unsigned);
    const armed = node.armed_secrets.some(({ expires_at }) => expires_at > now);
    if (armed && random.percent(80)) return enroll(random, node, this.#rotation.ca, now);
    return random.percent(60) ? armAgain(random, node, this.#rotation.ca) : changeStatus(random, node);
  }

  /** A step of a certificate's life: its first use, its renewal when that is due. Now and then it is late, early or repeated. */
  #onCertificate(node: NodeState, held: Held, now: number): Order | undefined {
    const random = this.#random;
    const unsigned = this.#unsigned.get(node.node_id);
    if (unsigned !== undefined && random.percent(50)) return sign(random, unsigned);
    if (!held.used && random.percent(30)) return use(held);
    if (random.percent(0.3)) return conflict(random, held);
    if (this.#lastRenewal !== undefined && random.percent(0.5)) return this.#lastRenewal;
    const due = held.issuer_ca_sha256 !== this.#rotation.ca?.issuing_ca_sha256 || held.not_after - now < 20 * 60_000;
    if (!random.percent(due ? 30 : 1)) return undefined;
    const presented = random.percent(90) ? held : (random.pick(this.#held.get(node.node_id) ?? []) ?? held);
    this.#lastRenewal = renew(random, presented, this.#rotation.ca, now);
    return this.#lastRenewal;
  }

  /** A step of a job's life. The more wait, the rarer another is queued, so that the queue stays short. */
  #onJobs(node: NodeState, now: number): Order {
    const random = this.#random;
    const choice = random.integer(1, 99);
    if (this.#waiting < random.integer(0, QUEUE)) return this.#queue(node);
    const leased = random.pick([...this.#running.values()]);
    if (leased === undefined || choice < 40) return this.#lease(node);
    if (choice < 45) return this.#complete(this.#lastEnded ?? leased);
    if (leased.expires_at > now || choice < 50) return this.#complete(leased);
    return order(expireLeaseCommand, { job_id: leased.job_id });
  }

  #queue({ node_id, pool }: NodeState): Order {
    const random = this.#random;
    const forWhom = random.percent(50) ? { node_id, pool: null } : { node_id: null, pool };
    return order(queueJobCommand, {
      job_id: random.uuid(),
      kind: random.pick(KINDS) ?? 'diagnose_host',
      ...forWhom,
      org_id: null,
      payload_sha256: random.hex(64),
      max_attempts: random.integer(1, 3),
      payload: '{}',
    });
  }

  #lease({ node_id }: NodeState): Order {
    const random = this.#random;
    if (this.#lastRequest !== undefined && random.percent(5)) {
      return order(leaseJobCommand, { ...this.#lastRequest, token_sha256: random.hex(64) });
    }
    this.#lastRequest = {
      fingerprint: this.#fingerprintOf(node_id),
      request_id: random.uuid(),
      kinds: random.percent(80) ? ALL_KINDS : ALL_KINDS.slice(1),
      token_sha256: random.hex(64),
      lease_ms: random.integer(1, 120) * 1_000,
    };
    return order(leaseJobCommand, this.#lastRequest);
  }

  #complete({ job_id, node_id, token_sha256 }: Leased): Order {
    const random = this.#random;
    const outcome = random.percent(80) ? 'succeeded' : (random.pick(['failed', 'returned'] as const) ?? 'failed');
    return order(completeJobCommand, {
      fingerprint: this.#fingerprintOf(node_id),
      job_id,
      token_sha256,
      outcome,
      result: '{}',
      result_sha256: random.hex(64),
      report: reportOf(this.#rows, job_id),
    });
  }

  #fingerprintOf(nodeId: string): string {
    return this.#held.get(nodeId)?.at(-1)?.fingerprint ?? this.#random.hex(64);
  }
}
