import { recordFirstUseCommand, revokeCertificatesCommand } from '../../src/commands/certificate.ts';
import { completeJobCommand, expireLeaseCommand, leaseJobCommand, queueJobCommand } from '../../src/commands/job.ts';
import {
  admitNodeCommand,
  failProvisioningCommand,
  recordHostFactsCommand,
  retryProvisioningCommand,
} from '../../src/commands/node.ts';
import type { EventData, FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { LeaseJob } from '../../src/domain/job/lease.ts';
import type { NodeState } from '../../src/domain/node/state.ts';
import type { MemoryRows } from './memory-rows.ts';
import type { Random } from './random.ts';
import {
  type Authorized,
  arm,
  convergeFirewall,
  deleteServer,
  enroll,
  type Order,
  order,
  recordCapacity,
  recordRunning,
  recordServer,
  requestNode,
  sign,
} from './random-orders.ts';

/** Nodes that live at a time; one whose certificates are revoked makes room for another. */
const NODES = 24;
/** At most so many jobs wait at a time. */
const QUEUE = 50;
const KINDS = ['diagnose_host', 'collect_garbage'];

type Leased = EventData<'job_leased'>;

/**
 * Gives the commands of operators, agents and scheduler, at random but mostly to the point, by what it observes of the log. Some come
 * out of order, are repeated or carry what is no longer valid: most are accepted, the others refused.
 */
export class RandomFleet {
  readonly #random: Random;
  readonly #rows: MemoryRows;
  #nodes: readonly string[] = [];
  readonly #unsigned = new Map<string, Authorized>();
  readonly #certificates = new Map<string, { fingerprint: string; not_after: number }>();
  readonly #running = new Map<string, Leased>();
  #lastEnded: Leased | undefined;
  #lastRequest: LeaseJob | undefined;
  #waiting = 0;

  /** `rows` is kept up to date by the caller; the fleet itself writes no more than when a node was heard. */
  constructor(random: Random, rows: MemoryRows) {
    this.#random = random;
    this.#rows = rows;
  }

  /** The next command, given at a time (ms). */
  next(now: number): Order {
    const random = this.#random;
    const node = this.#rows.rows('fleet_nodes').get(random.pick(this.#nodes) ?? '');
    if (node === undefined || (this.#nodes.length < NODES && random.percent(10))) return requestNode(this.#random);
    if (random.percent(1)) return convergeFirewall(this.#random);
    if (node.status === 'provisioning' || random.percent(3)) return this.#onNode(node, now);
    const certificate = this.#certificates.get(node.node_id);
    if (certificate === undefined || certificate.not_after <= now) return order(revokeCertificatesCommand, node);
    this.#rows.putLiveness({ node_id: node.node_id, last_seen_at: now, data_disk_free_gb: null });
    return this.#onJobs(node, now);
  }

  /** Learns from an event what there is to be done. */
  observe({ type, data }: FleetEvent): void {
    switch (type) {
      case 'node_provisioning_requested':
        this.#nodes = [...this.#nodes, data.node_id];
        break;
      case 'certificates_revoked':
        this.#nodes = this.#nodes.filter((id) => id !== data.node_id);
        break;
      case 'certificate_authorized':
        this.#unsigned.set(data.node_id, data);
        break;
      case 'certificate_issued':
        this.#certificates.set(data.node_id, {
          fingerprint: data.fingerprint,
          not_after: this.#unsigned.get(data.node_id)?.not_after ?? 0,
        });
        this.#unsigned.delete(data.node_id);
        break;
      case 'job_queued':
        this.#waiting += 1;
        break;
      case 'job_leased':
        if (!data.reissued) this.#waiting -= 1;
        this.#running.set(data.job_id, data);
        break;
      case 'job_lease_expired':
      case 'job_returned':
        this.#waiting += 1;
        this.#end(data.job_id);
        break;
      case 'job_failed':
        if (data.reason === 'attempts_exhausted') this.#waiting -= 1;
        this.#end(data.job_id);
        break;
      case 'job_completed':
        this.#end(data.job_id);
        break;
      case 'node_capacity_recorded':
      case 'node_enrollment_secret_armed':
      case 'node_server_requested':
      case 'node_server_adopted':
      case 'node_server_running':
      case 'node_enrolled':
      case 'node_provisioning_failed':
      case 'node_provisioning_retried':
      case 'node_server_deleted':
      case 'node_admitted':
      case 'node_host_facts_changed':
      case 'certificate_first_used':
      case 'pool_firewall_converged':
    }
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
    if (node.status === 'active') {
      return node.schedulable ? this.#reportFacts(node) : order(admitNodeCommand, { node_id });
    }
    if (unsigned !== undefined && (unsigned.secret_expires_at ?? 0) > now) return sign(this.#random, unsigned);
    if (node.cpu_millis === null) return recordCapacity(this.#random, node);
    if (node.armed_secrets.length === 0 && unsigned === undefined) return arm(this.#random, node);
    if (node.server_id === null) return recordServer(this.#random, node);
    if (node.provision_state !== 'awaiting_enrollment') return recordRunning(this.#random, node);
    const lasting = node.armed_secrets.some(({ expires_at }) => expires_at > now);
    return lasting ? enroll(this.#random, node, now) : order(failProvisioningCommand, { node_id });
  }

  #outOfOrder(node: NodeState, now: number): Order {
    const { node_id } = node;
    const random = this.#random;
    const steps: readonly (() => Order)[] = [
      () => recordCapacity(this.#random, node),
      () => arm(this.#random, node),
      () => recordServer(this.#random, node),
      () => recordRunning(this.#random, node),
      () => enroll(this.#random, node, now),
      () => deleteServer(node),
      () => this.#reportFacts(node),
      () => order(failProvisioningCommand, { node_id }),
      () => order(retryProvisioningCommand, { node_id }),
      () => order(admitNodeCommand, { node_id }),
      () => order(revokeCertificatesCommand, { node_id }),
    ];
    return (random.pick(steps) ?? (() => requestNode(this.#random)))();
  }

  #reportFacts({ node_id }: NodeState): Order {
    const facts = {
      cpu_count: 4,
      memory_mb: 7_750,
      kernel: `6.12.${this.#random.integer(40, 60)}`,
      docker_version: null,
      agent_version: '0.1.0',
      bridge_netfilter: true,
    };
    return order(recordHostFactsCommand, { fingerprint: this.#fingerprintOf(node_id), facts });
  }

  /** A step of a job's life. The more wait, the rarer another is queued, so that the queue stays short. */
  #onJobs(node: NodeState, now: number): Order {
    const random = this.#random;
    const choice = random.integer(0, 99);
    if (choice < 1) return order(recordFirstUseCommand, { fingerprint: this.#fingerprintOf(node.node_id) });
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
      kinds: random.percent(80) ? KINDS : KINDS.slice(1),
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
    });
  }

  #fingerprintOf(nodeId: string): string {
    return this.#certificates.get(nodeId)?.fingerprint ?? this.#random.hex(64);
  }
}
