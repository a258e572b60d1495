import * as v from 'valibot';
import { event } from '../event/definition.ts';
import {
  count,
  hostLabel,
  instantMs,
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
  node_drain_started: event(v.strictObject({ node_id: uuid })),
  node_lost: event(v.strictObject({ node_id: uuid, silent_ms: count })),
  node_retired: event(v.strictObject({ node_id: uuid })),
  node_host_facts_changed: event(
    v.strictObject({
      node_id: uuid,
      cpu_count: count,
      memory_mb: count,
      kernel: versionToken,
      docker_version: v.nullable(versionToken),
      agent_version: versionToken,
      bridge_netfilter: v.nullable(v.boolean()),
    }),
  ),
} as const;
