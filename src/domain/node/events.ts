import * as v from 'valibot';
import { event } from '../event/definition.ts';
import {
  allocationId,
  count,
  hostLabel,
  instanceId,
  instantMs,
  jobKind,
  pool,
  providerId,
  serialHex,
  sha256Hex,
  slug,
  uuid,
  versionToken,
} from '../fields.ts';

/** Why provisioning of a node ended without an enrolled node. */
const provisioningFailure = v.picklist(['enrollment_secret_expired', 'server_create_failed', 'server_vanished']);
/** One of the reasons. */
export type ProvisioningFailure = v.InferOutput<typeof provisioningFailure>;

const armed = { node_id: uuid, secret_sha256: sha256Hex, expires_at: instantMs };

const facts = {
  node_id: uuid,
  cpu_count: count,
  memory_mb: count,
  kernel: versionToken,
  docker_version: v.nullable(versionToken),
  agent_version: versionToken,
  bridge_netfilter: v.nullable(v.boolean()),
};

/** Most of one kind that a node may have had. */
const MOST = 1_000;

/** What is taken from a node that will not come back: everything it had, by name. Part of its one event. */
const reclaimed = {
  /** Jobs that it had or that waited for it: they have failed, and their tokens are worth nothing. */
  fenced_jobs: v.pipe(v.array(v.strictObject({ job_id: uuid, kind: jobKind })), v.maxLength(MOST)),
  lost_instance_ids: v.pipe(v.array(instanceId), v.maxLength(MOST)),
  /** Instances that nothing was done for on it yet: they wait for a place again. */
  unplaced_instance_ids: v.pipe(v.array(instanceId), v.maxLength(MOST)),
  replacement_instance_ids: v.pipe(v.array(instanceId), v.maxLength(MOST)),
  released_allocation_ids: v.pipe(v.array(allocationId), v.maxLength(2 * MOST)),
  stranded_database_ids: v.pipe(v.array(uuid), v.maxLength(MOST)),
};
/** What is taken from a node that will not come back. */
export type Reclaimed = v.InferOutput<ReturnType<typeof reclaimedSchema>>;
const reclaimedSchema = () => v.strictObject(reclaimed);

const nothingReclaimed = {
  fenced_jobs: [],
  lost_instance_ids: [],
  unplaced_instance_ids: [],
  replacement_instance_ids: [],
  released_allocation_ids: [],
  stranded_database_ids: [],
} satisfies Reclaimed;

const ipv4 = v.pipe(v.string(), v.ipv4(), v.description('IPv4 address'));
const ipv6 = v.pipe(v.string(), v.regex(/^[0-9a-f:]+(?:\/\d{1,3})?$/), v.description('IPv6 address or network'));

/** Events of stream `node-<id>` that tell a node's life. Times are ms, capacity is what jobs may use (reserve taken off). */
export const nodeEvents = {
  node_provisioning_requested: event(
    v.strictObject({
      node_id: uuid,
      name: hostLabel,
      pool,
      provider: v.literal('hetzner'),
      region: slug,
      server_type: slug,
      image: slug,
      placement_group: v.nullable(slug),
    }),
  ),
  node_capacity_recorded: event(
    v.strictObject({
      node_id: uuid,
      cpu_millis: count,
      memory_mb: count,
      disk_gb: count,
      architecture: v.picklist(['x86', 'arm']),
    }),
  ),
  node_enrollment_secret_armed: {
    version: 2,
    data: v.strictObject({
      ...armed,
      /** The CAs by which whoever gets the secret will believe the gateway; none is known of secrets from before this was recorded. */
      ca_sha256s: v.pipe(v.array(sha256Hex), v.maxLength(16)),
    }),
    earlier: { 1: { data: v.strictObject(armed), upcast: (data: object) => ({ ...data, ca_sha256s: [] }) } },
  },
  node_server_requested: event(v.strictObject({ node_id: uuid, server_id: providerId })),
  node_server_adopted: event(v.strictObject({ node_id: uuid, server_id: providerId })),
  node_server_running: event(
    v.strictObject({
      node_id: uuid,
      server_id: providerId,
      server_type: slug,
      location: slug,
      image: v.nullable(slug),
      public_ipv4: v.nullable(ipv4),
      public_ipv6: v.nullable(ipv6),
      private_ipv4: v.nullable(ipv4),
    }),
  ),
  node_enrolled: event(v.strictObject({ node_id: uuid, certificate_id: serialHex })),
  node_provisioning_failed: event(v.strictObject({ node_id: uuid, reason: provisioningFailure })),
  node_provisioning_retried: event(v.strictObject({ node_id: uuid })),
  node_server_deleted: event(v.strictObject({ node_id: uuid, server_id: v.nullable(providerId) })),
  node_admitted: event(v.strictObject({ node_id: uuid })),
  node_became_unhealthy: event(v.strictObject({ node_id: uuid, silent_ms: count })),
  node_recovered: event(v.strictObject({ node_id: uuid })),
  node_drain_started: {
    version: 2,
    data: v.strictObject({
      node_id: uuid,
      /** Its services are replaced elsewhere before they are stopped here, so many at once. */
      migrate: v.boolean(),
      max_in_flight: v.nullable(v.pipe(count, v.minValue(1))),
      deadline_at: v.nullable(instantMs),
    }),
    earlier: {
      1: {
        data: v.strictObject({ node_id: uuid }),
        upcast: (data: object) => ({ ...data, migrate: false, max_in_flight: null, deadline_at: null }),
      },
    },
  },
  node_drain_cancelled: event(v.strictObject({ node_id: uuid })),
  node_drain_overdue: event(v.strictObject({ node_id: uuid, blocking_instance_ids: reclaimed.lost_instance_ids })),
  node_taken_offline: event(v.strictObject({ node_id: uuid })),
  node_lost: {
    version: 2,
    data: v.strictObject({ node_id: uuid, silent_ms: count, ...reclaimed }),
    earlier: {
      1: {
        data: v.strictObject({ node_id: uuid, silent_ms: count }),
        upcast: (data: object) => ({ ...data, ...nothingReclaimed }),
      },
    },
  },
  node_revoked: event(v.strictObject({ node_id: uuid, ...reclaimed })),
  node_cleanup_confirmed: event(
    v.strictObject({ node_id: uuid, instance_ids: v.pipe(v.array(instanceId), v.minLength(1), v.maxLength(64)) }),
  ),
  node_mesh_coordinator_set: event(v.strictObject({ node_id: uuid, coordinator: v.boolean() })),
  node_retired: event(v.strictObject({ node_id: uuid })),
  node_host_facts_changed: {
    version: 2,
    data: v.strictObject({
      ...facts,
      runtime: v.nullable(v.picklist(['docker', 'process'])),
      ingress: v.nullable(v.picklist(['caddy', 'embedded'])),
    }),
    earlier: {
      1: { data: v.strictObject(facts), upcast: (data: object) => ({ ...data, runtime: null, ingress: null }) },
    },
  },
} as const;
