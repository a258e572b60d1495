import * as v from 'valibot';
import { event } from '../event/definition.ts';
import {
  commandLine,
  count,
  cpuMillis,
  diskGb,
  generation,
  hostLabel,
  hostname,
  httpPath,
  imageReference,
  instanceId,
  instantMs,
  ipAddress,
  memoryMb,
  pool,
  port,
  roleName,
  sha256Hex,
  slug,
  uuid,
} from '../fields.ts';

/**
 * Most instances of one role, and of all roles together (one command asks for them), and of a role that serves hostnames (a route names
 * them); roles and hostnames of a deployment.
 */
export const MOST = {
  count: 1_000,
  instances: 800,
  serving: 256,
  roles: 16,
  hostnames: 64,
  members: 1_000,
  regions: 16,
} as const;

/**
 * One role: `service` runs for as long as the deployment lives; `release` and `job` run once, the releases before everything else.
 * `serves_hostnames`: requests to the deployment's hostnames go to its instances (one role at most).
 */
export const role = v.strictObject({
  role: roleName,
  run: v.picklist(['service', 'release', 'job']),
  count: v.pipe(count, v.minValue(1), v.maxValue(MOST.count)),
  cpu_millis: cpuMillis,
  memory_mb: memoryMb,
  disk_gb: diskGb,
  image: imageReference,
  command: commandLine,
  listens: v.boolean(),
  readiness_path: v.nullable(httpPath),
  timeout_seconds: v.pipe(count, v.minValue(1), v.maxValue(86_400)),
  serves_hostnames: v.boolean(),
});
/** One role of a deployment. */
export type Role = v.InferOutput<typeof role>;

/** How an artifact is built before anything is placed. */
const build = v.strictObject({
  source_sha256: sha256Hex,
  source_bytes: count,
  command: commandLine,
  timeout_seconds: v.pipe(count, v.minValue(1), v.maxValue(86_400)),
});

/** Why a live deployment is not whole. */
const degradedReason = v.picklist([
  'no_eligible_node',
  'placement_rejected',
  'instance_failed',
  'relocation_failed',
  'no_ingress_node',
]);
/** One of the reasons. */
export type DegradedReason = v.InferOutput<typeof degradedReason>;

const deployment = { deployment_id: uuid } as const;
const instance = { ...deployment, instance_id: instanceId } as const;
const onNode = { ...instance, node_id: uuid } as const;
const named = { ...instance, role: roleName, slot: count, generation } as const;

/** Events of stream `deployment-<id>` that tell of a deployment and of its instances. */
export const deploymentEvents = {
  deployment_created: event(
    v.strictObject({
      ...deployment,
      name: hostLabel,
      org_id: uuid,
      pool,
      regions: v.pipe(v.array(slug), v.minLength(1), v.maxLength(MOST.regions)),
      /** The only nodes that may run it, where its environment is sealed; null: any. */
      sealed_member_node_ids: v.nullable(v.pipe(v.array(uuid), v.maxLength(MOST.members))),
      roles: v.pipe(v.array(role), v.minLength(1), v.maxLength(MOST.roles)),
      hostnames: v.pipe(v.array(hostname), v.maxLength(MOST.hostnames)),
      build: v.nullable(build),
      build_job_id: v.nullable(uuid),
      spec_sha256: sha256Hex,
    }),
  ),
  deployment_built: event(v.strictObject({ ...deployment, artifact_sha256: sha256Hex, artifact_bytes: count })),
  deployment_became_live: event(v.strictObject(deployment)),
  deployment_degraded: event(v.strictObject({ ...deployment, reason: degradedReason })),
  deployment_recovered: event(v.strictObject(deployment)),
  deployment_failed: event(
    v.strictObject({
      ...deployment,
      reason: v.picklist(['build_failed', 'release_failed']),
      code: v.picklist(['node_lost', 'job_failed']),
    }),
  ),
  deployment_removal_requested: event(v.strictObject(deployment)),
  deployment_removed: event(v.strictObject(deployment)),
  instance_requested: event(v.strictObject(named)),
  instance_replacement_queued: event(
    v.strictObject({
      ...named,
      replaces_instance_id: instanceId,
      cause: v.picklist(['node_lost', 'node_revoked', 'migration', 'retry']),
    }),
  ),
  instance_placed: event(
    v.strictObject({ ...onNode, cpu_millis: cpuMillis, memory_mb: memoryMb, disk_gb: diskGb, subnet_slot: count }),
  ),
  instance_unplaced: event(
    v.strictObject({ ...onNode, job_id: v.nullable(uuid), reason: v.picklist(['node_draining', 'admission_timeout']) }),
  ),
  network_admitted: event(v.strictObject({ ...onNode, heard_at: instantMs, job_id: uuid })),
  instance_ready: event(
    v.strictObject({
      ...onNode,
      address: v.nullable(ipAddress),
      port: v.nullable(port),
      /** The one that it takes over from, which still runs: it serves until its routes are gone, then it is taken down. */
      supersedes_instance_id: v.nullable(instanceId),
    }),
  ),
  instance_done: event(v.strictObject(onNode)),
  instance_failed: event(v.strictObject({ ...onNode, reason: v.picklist(['job_failed', 'attempts_exhausted']) })),
  instance_teardown_queued: event(
    v.strictObject({ ...onNode, job_id: uuid, cause: v.picklist(['migration', 'removal', 'retry']) }),
  ),
  instance_removed: event(v.strictObject({ ...instance, node_id: v.nullable(uuid) })),
} as const;
