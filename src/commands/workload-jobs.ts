import { hash } from 'node:crypto';
import canonicalize from 'canonicalize';
import type { DatabaseState } from '../domain/database/state.ts';
import { roleOf } from '../domain/deployment/place.ts';
import type { DeploymentState, InstanceState } from '../domain/deployment/state.ts';
import type { JobToQueue } from '../domain/job/queued.ts';
import { type JobKind, type JobPayload, parseJobPayload } from '../protocol/job-kinds/registry.ts';
import { DEFAULT_MAX_ATTEMPTS } from './new-job.ts';

/** How long an instance may take to end by itself before it is killed. */
const GRACE_SECONDS = 60;

/** Whose job it is and who does it. Jobs of deployments carry their organisation; platform jobs (databases) none. */
interface Target {
  readonly job_id: string;
  readonly node_id: string | null;
  readonly pool?: JobToQueue['pool'];
  readonly org_id: string | null;
}

/** A job made beforehand, for a decision to queue: its payload checked against its kind and made canonical. Throws when it is not of its kind: a defect. */
function makeJob<K extends JobKind>(
  kind: K,
  { job_id, node_id, pool = null, org_id }: Target,
  value: JobPayload<K>,
): JobToQueue {
  const parsed = parseJobPayload(kind, value);
  const payload = parsed.ok ? canonicalize(parsed.value) : undefined;
  if (payload === undefined)
    throw new Error(`a job of kind ${kind} has no payload: ${parsed.ok ? 'not JSON' : parsed.problem}`);
  const payload_sha256 = hash('sha256', payload);
  return { job_id, kind, node_id, pool, org_id, payload_sha256, max_attempts: DEFAULT_MAX_ATTEMPTS, payload };
}

/** Starts an instance on its node. */
export function ensureApplicationJob(
  job_id: string,
  deployment: DeploymentState,
  instance: InstanceState,
  epoch: number,
): JobToQueue {
  const role = roleOf(deployment, instance);
  if (role === undefined) throw new Error(`deployment ${deployment.deployment_id} has no role ${instance.role}`);
  const { instance_id, deployment_id, generation, node_id } = instance;
  const { image, command, cpu_millis, memory_mb, listens, readiness_path, timeout_seconds } = role;
  return makeJob(
    'ensure_application',
    { job_id, node_id, org_id: deployment.org_id },
    {
      instance_id,
      deployment_id,
      generation,
      epoch,
      run: role.run === 'service' ? 'service' : 'once',
      image,
      command,
      cpu_millis,
      memory_mb,
      listens,
      readiness_path,
      timeout_seconds,
    },
  );
}

/** Takes an instance down on its node. */
export function teardownApplicationJob(
  job_id: string,
  { instance_id, generation, node_id }: InstanceState,
  org_id: string | null,
): JobToQueue {
  return makeJob(
    'teardown_application',
    { job_id, node_id, org_id },
    { instance_id, generation, grace_seconds: GRACE_SECONDS },
  );
}

/** A route as its ingress host is told of it. */
export interface RouteOrder {
  readonly deployment: DeploymentState;
  readonly hostname: string;
  readonly generation: number;
  readonly node_id: string;
  /** Empty: the hostname is to be taken away. */
  readonly instances: readonly InstanceState[];
}

/** Points a hostname at instances, on an ingress host. */
export function publishIngressJob(job_id: string, order: RouteOrder, epoch: number): JobToQueue {
  const { deployment, hostname, generation, node_id, instances } = order;
  const upstreams = instances.flatMap(({ address, port }) =>
    address === null || port === null ? [] : [{ address, port }],
  );
  const { deployment_id, org_id } = deployment;
  return makeJob(
    'publish_ingress',
    { job_id, node_id, org_id },
    { hostname, deployment_id, generation, epoch, upstreams },
  );
}

/** Starts a database on its node. */
export function ensureDatabaseJob(
  job_id: string,
  database: Pick<
    DatabaseState,
    'database_id' | 'node_id' | 'image' | 'command' | 'cpu_millis' | 'memory_mb' | 'timeout_seconds'
  >,
  epoch: number,
): JobToQueue {
  const { database_id, node_id, image, command, cpu_millis, memory_mb, timeout_seconds } = database;
  return makeJob(
    'ensure_database',
    { job_id, node_id, org_id: null },
    { database_id, epoch, image, command: [...command], cpu_millis, memory_mb, timeout_seconds },
  );
}

/** Builds a deployment's artifact, on any node of the build pool. */
export function buildJob(
  job_id: string,
  deployment_id: string,
  org_id: string,
  build: NonNullable<DeploymentState['build']>,
): JobToQueue {
  const { source_sha256, source_bytes, command, timeout_seconds } = build;
  return makeJob(
    'build',
    { job_id, node_id: null, pool: 'build', org_id },
    { deployment_id, source_sha256, source_bytes, command: [...command], timeout_seconds },
  );
}
