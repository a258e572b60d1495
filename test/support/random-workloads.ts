import {
  admitNetworkCommand,
  assessDeploymentCommand,
  deployCommand,
  placeInstanceCommand,
  publishRouteCommand,
  removeDeploymentCommand,
  removeRouteCommand,
  retryDeploymentCommand,
  teardownInstanceCommand,
} from '../../src/commands/deployment.ts';
import {
  buildJob,
  ensureApplicationJob,
  publishIngressJob,
  teardownApplicationJob,
} from '../../src/commands/workload-jobs.ts';
import { wantedInstances } from '../../src/domain/ingress/publish.ts';
import type { Report } from '../../src/domain/job/purpose.ts';
import { EPOCH } from '../../src/log/epoch.ts';
import type { MemoryRows } from './memory-rows.ts';
import type { Random } from './random.ts';
import { unplace } from './random-incidents.ts';
import { type Order, order } from './random-orders.ts';
import { workloadSamples } from './workload-events.ts';

/** Deployments that live at a time. */
const DEPLOYMENTS = 6;

/**
 * Gives the commands of operators and of the scheduler about deployments, at random but mostly to the point; those of nothing that there is
 * are undefined.
 */
export class RandomWorkloads {
  readonly #random: Random;
  readonly #rows: MemoryRows;

  constructor(random: Random, rows: MemoryRows) {
    this.#random = random;
    this.#rows = rows;
  }

  /** The next command. */
  next(): Order | undefined {
    const random = this.#random;
    const steps: readonly (() => Order | undefined)[] = [
      () => this.#deploy(),
      () => this.#place(),
      () => this.#place(),
      () => this.#admit(),
      () => this.#admit(),
      () => this.#publish(),
      () => unplace(random, random.pick(this.#instances('reserved'))),
      () => this.#removeRoute(),
      () => this.#tearDown(),
      () => this.#assess(),
      () => this.#assess(),
      () => this.#retry(),
      () => this.#remove(),
    ];
    return random.pick(steps)?.();
  }

  #deploy(): Order | undefined {
    const random = this.#random;
    const present = this.#deployments().filter(({ status }) => status !== 'removed' && status !== 'failed');
    if (present.length >= DEPLOYMENTS) return undefined;
    const deployment_id = random.uuid();
    const [web] = workloadSamples.deployment_created.data.roles;
    if (web === undefined) throw new Error('the sample has no role');
    const small = { cpu_millis: 100, memory_mb: 64, disk_gb: 1 };
    const once = { listens: false, serves_hostnames: false, readiness_path: null };
    const release = { ...web, ...small, ...once, role: 'migrate', run: 'release' as const, count: 1 };
    const build = random.percent(40)
      ? { source_sha256: random.hex(64), source_bytes: 1_024, command: ['make'], timeout_seconds: 60 }
      : null;
    const org_id = random.uuid();
    const job = build === null ? null : buildJob(random.uuid(), deployment_id, org_id, build);
    return order(deployCommand, {
      build: job,
      deployment: {
        ...workloadSamples.deployment_created.data,
        deployment_id,
        org_id,
        name: `d-${random.hex(8)}`,
        hostnames: [`d-${random.hex(8)}.example.com`],
        roles: [...(random.percent(40) ? [release] : []), { ...web, ...small, count: random.integer(1, 3) }],
        build,
        build_job_id: job?.job_id ?? null,
      },
    });
  }

  #place(): Order | undefined {
    const instance = this.#random.pick(this.#instances('pending_placement'));
    const node = this.#random.pick(this.#activeNodes());
    if (instance === undefined || node === undefined) return undefined;
    return order(placeInstanceCommand, { instance_id: instance.instance_id, node_id: node.node_id });
  }

  #admit(): Order | undefined {
    const instance = this.#random.pick(this.#instances('reserved'));
    const deployment = instance && this.#rows.rows('deployments').get(instance.deployment_id);
    if (instance === undefined || deployment === undefined) return undefined;
    const job = ensureApplicationJob(this.#random.uuid(), deployment, instance, EPOCH);
    return order(admitNetworkCommand, { instance_id: instance.instance_id, job });
  }

  #publish(): Order | undefined {
    const deployment = this.#random.pick(this.#deployments());
    const node = this.#random.pick(this.#activeNodes().filter(({ ingress }) => ingress !== null));
    const hostname = this.#random.pick(deployment?.hostnames ?? []);
    if (deployment === undefined || node === undefined || hostname === undefined) return undefined;
    const { deployment_id } = deployment;
    const { node_id } = node;
    const all = [...this.#rows.rows('application_instances').values()];
    const instances = wantedInstances(
      deployment,
      all.filter((one) => one.deployment_id === deployment_id),
    );
    if (instances === undefined) return undefined;
    const before = [...this.#rows.rows('ingress_routes').values()].filter((route) => route.hostname === hostname);
    const generation = Math.max(0, ...before.map((route) => route.generation)) + 1;
    const job = publishIngressJob(this.#random.uuid(), { deployment, hostname, generation, node_id, instances }, EPOCH);
    const instance_ids = instances.map(({ instance_id }) => instance_id);
    return order(publishRouteCommand, { deployment_id, hostname, node_id, instance_ids, job });
  }

  #removeRoute(): Order | undefined {
    const routes = [...this.#rows.rows('ingress_routes').values()].filter(
      ({ status }) => status === 'draining' || status === 'active',
    );
    const route = this.#random.pick(routes);
    const deployment = route && this.#rows.rows('deployments').get(route.deployment_id);
    if (route === undefined || deployment === undefined) return undefined;
    const { route_id, hostname, generation, node_id } = route;
    const job = publishIngressJob(
      this.#random.uuid(),
      { deployment, hostname, generation, node_id, instances: [] },
      EPOCH,
    );
    return order(removeRouteCommand, { route_id, job });
  }

  #tearDown(): Order | undefined {
    const instance = this.#random.pick([
      ...this.#instances('draining'),
      ...this.#instances('error'),
      ...this.#instances('ready'),
      ...this.#instances('pending_placement'),
    ]);
    if (instance === undefined) return undefined;
    const job = instance.node_id === null ? null : teardownApplicationJob(this.#random.uuid(), instance, null);
    return order(teardownInstanceCommand, { instance_id: instance.instance_id, job });
  }

  #assess(): Order | undefined {
    const deployment = this.#random.pick(this.#deployments());
    if (deployment === undefined) return undefined;
    const unplaceable = this.#random.percent(10) ? 'no_eligible_node' : null;
    return order(assessDeploymentCommand, { deployment_id: deployment.deployment_id, unplaceable });
  }

  #retry(): Order | undefined {
    const deployment = this.#random.pick(this.#deployments());
    return deployment && order(retryDeploymentCommand, { deployment_id: deployment.deployment_id });
  }

  #remove(): Order | undefined {
    const deployment = this.#random.percent(3) ? this.#random.pick(this.#deployments()) : undefined;
    return deployment && order(removeDeploymentCommand, { deployment_id: deployment.deployment_id });
  }

  #deployments() {
    return [...this.#rows.rows('deployments').values()].filter(({ status }) => status !== 'removed');
  }

  #instances(status: string) {
    return [...this.#rows.rows('application_instances').values()].filter((one) => one.status === status);
  }

  #activeNodes() {
    return [...this.#rows.rows('fleet_nodes').values()].filter(({ status }) => status === 'active');
  }
}

/** Kinds of job that are for a workload. */
export const WORKLOAD_KINDS = ['build', 'ensure_application', 'publish_ingress', 'teardown_application'] as const;

/** What an agent says came of a job that succeeded, by the kind of the job and, of an instance, by what it is for. */
export function reportOf(rows: MemoryRows, jobId: string): Report {
  const { kind } = rows.rows('jobs').get(jobId) ?? { kind: 'unknown' };
  switch (kind) {
    case 'ensure_application': {
      const instance = [...rows.rows('application_instances').values()].find(({ job_id }) => job_id === jobId);
      return instance?.role === 'migrate' ? { kind: 'done' } : { kind: 'ready', address: '10.0.0.7', port: 40_000 };
    }
    case 'teardown_application':
      return { kind: 'removed' };
    case 'publish_ingress':
      return { kind: 'route', serving: true };
    case 'build':
      return { kind: 'built', artifact_sha256: 'a7'.repeat(32), artifact_bytes: 4_096 };
    default:
      return { kind: 'other' };
  }
}
