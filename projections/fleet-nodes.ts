import type { RecordedOf } from '../src/domain/event/recorded.ts';
import type { NodeState, ProvisionState, Reclamation } from '../src/domain/node/state.ts';
import { creates, defineProjection, updates } from './projection.ts';
import { bigint, boolean, defineTable, integer, json, text, timestamp } from './table.ts';

const table = defineTable<NodeState>()({
  name: 'fleet_nodes',
  key: 'node_id',
  columns: {
    node_id: text,
    name: text,
    pool: text,
    provider: text,
    region: text,
    server_type: text,
    image: text,
    placement_group: text.orNull,
    status: text,
    schedulable: boolean,
    provision_state: text,
    failure_reason: text.orNull,
    armed_secrets: json,
    server_id: bigint.orNull,
    location: text.orNull,
    public_ipv4: text.orNull,
    public_ipv6: text.orNull,
    private_ipv4: text.orNull,
    cpu_millis: integer.orNull,
    memory_mb: integer.orNull,
    disk_gb: integer.orNull,
    architecture: text.orNull,
    host_cpu_count: integer.orNull,
    host_memory_mb: integer.orNull,
    host_kernel: text.orNull,
    host_docker_version: text.orNull,
    host_bridge_netfilter: boolean.orNull,
    agent_version: text.orNull,
    runtime: text.orNull,
    ingress: text.orNull,
    host_facts_at: timestamp.orNull,
    conflict: json.orNull,
    requested_at: timestamp,
    enrolled_at: timestamp.orNull,
    admitted_at: timestamp.orNull,
    mesh_coordinator: boolean,
    subnet_slots_used: integer,
    drain: json.orNull,
    reclamation: json.orNull,
    retired_at: timestamp.orNull,
  },
  indexes: [
    { name: 'fleet_nodes_name', columns: ['name'], unique: true },
    { name: 'fleet_nodes_pool', columns: ['pool', 'status'] },
  ],
});

/** News of a server that came too late does not bring a failed node back: only a retry does, and it deals with that server. */
function unlessFailed(row: NodeState, next: ProvisionState): ProvisionState {
  return row.provision_state === 'failed' ? 'failed' : next;
}

/** What a node that will not come back had, for whoever looks at it later. */
function reclamation({ at, data }: RecordedOf<'node_lost'> | RecordedOf<'node_revoked'>): Reclamation {
  return {
    silent_ms: 'silent_ms' in data ? data.silent_ms : null,
    at,
    fenced_jobs: data.fenced_jobs,
    lost_instance_ids: data.lost_instance_ids,
    unplaced_instance_ids: data.unplaced_instance_ids,
    replacement_instance_ids: data.replacement_instance_ids,
    released_allocations: data.released_allocation_ids.length,
    stranded_database_ids: data.stranded_database_ids,
  };
}

/** One row a node. Source of the gateway's status check, of provisioning's next step and of `fleet list`. */
export const fleetNodes = defineProjection(table, {
  node_provisioning_requested: creates(
    (e) => e.data.node_id,
    (e): NodeState => ({
      ...e.data,
      status: 'provisioning',
      schedulable: false,
      provision_state: 'pending',
      failure_reason: null,
      armed_secrets: [],
      server_id: null,
      location: null,
      public_ipv4: null,
      public_ipv6: null,
      private_ipv4: null,
      cpu_millis: null,
      memory_mb: null,
      disk_gb: null,
      architecture: null,
      host_cpu_count: null,
      host_memory_mb: null,
      host_kernel: null,
      host_docker_version: null,
      host_bridge_netfilter: null,
      agent_version: null,
      runtime: null,
      ingress: null,
      host_facts_at: null,
      conflict: null,
      requested_at: e.at,
      enrolled_at: null,
      admitted_at: null,
      mesh_coordinator: false,
      subnet_slots_used: 0,
      drain: null,
      reclamation: null,
      retired_at: null,
    }),
  ),
  node_capacity_recorded: updates(
    (e) => e.data.node_id,
    (row, { data }) => ({
      ...row,
      cpu_millis: data.cpu_millis,
      memory_mb: data.memory_mb,
      disk_gb: data.disk_gb,
      architecture: data.architecture,
    }),
  ),
  node_enrollment_secret_armed: updates(
    (e) => e.data.node_id,
    (row, { data }) => ({
      ...row,
      armed_secrets: [
        ...row.armed_secrets,
        { sha256: data.secret_sha256, expires_at: data.expires_at, ca_sha256s: data.ca_sha256s },
      ],
    }),
  ),
  node_server_requested: updates(
    (e) => e.data.node_id,
    (row, { data }) => ({ ...row, provision_state: unlessFailed(row, 'server_requested'), server_id: data.server_id }),
  ),
  node_server_adopted: updates(
    (e) => e.data.node_id,
    (row, { data }) => ({ ...row, provision_state: unlessFailed(row, 'server_requested'), server_id: data.server_id }),
  ),
  node_server_running: updates(
    (e) => e.data.node_id,
    (row, { data }) => ({
      ...row,
      provision_state: unlessFailed(row, row.status === 'provisioning' ? 'awaiting_enrollment' : 'enrolled'),
      server_id: data.server_id,
      server_type: data.server_type,
      location: data.location,
      public_ipv4: data.public_ipv4,
      public_ipv6: data.public_ipv6,
      private_ipv4: data.private_ipv4,
    }),
  ),
  certificate_authorized: updates(
    (e) => e.data.node_id,
    // A node that renews is not the one that an operator armed a secret for, or it no longer needs it; it ends by itself.
    (row, { data }) => (data.cause === 'renewal' ? row : { ...row, armed_secrets: [], conflict: null }),
  ),
  certificate_conflict_seen: updates(
    (e) => e.data.node_id,
    (row, { at, data }) => ({
      ...row,
      conflict: { boot_ids: data.boot_ids, addresses: data.addresses, seen_at: at },
    }),
  ),
  node_enrolled: updates(
    (e) => e.data.node_id,
    (row, e) => ({ ...row, status: 'active', provision_state: 'enrolled', failure_reason: null, enrolled_at: e.at }),
  ),
  node_provisioning_failed: updates(
    (e) => e.data.node_id,
    (row, { data }) => ({ ...row, provision_state: 'failed', failure_reason: data.reason, armed_secrets: [] }),
  ),
  node_provisioning_retried: updates(
    (e) => e.data.node_id,
    (row) => ({ ...row, provision_state: 'pending', failure_reason: null }),
  ),
  node_server_deleted: updates(
    (e) => e.data.node_id,
    (row) => ({ ...row, server_id: null, public_ipv4: null, public_ipv6: null, private_ipv4: null }),
  ),
  node_admitted: updates(
    (e) => e.data.node_id,
    (row, e) => ({ ...row, schedulable: true, admitted_at: e.at }),
  ),
  node_became_unhealthy: updates(
    (e) => e.data.node_id,
    (row) => ({ ...row, status: 'unhealthy' }),
  ),
  node_recovered: updates(
    (e) => e.data.node_id,
    (row) => ({ ...row, status: 'active' }),
  ),
  node_drain_started: updates(
    (e) => e.data.node_id,
    (row, { at, data: { migrate, max_in_flight, deadline_at } }) => ({
      ...row,
      status: 'draining',
      schedulable: false,
      drain: { migrate, max_in_flight, deadline_at, started_at: at, overdue_at: null },
    }),
  ),
  node_drain_cancelled: updates(
    (e) => e.data.node_id,
    (row) => ({ ...row, status: 'active', schedulable: row.admitted_at !== null, drain: null }),
  ),
  node_drain_overdue: updates(
    (e) => e.data.node_id,
    (row, { at }) => ({ ...row, drain: row.drain && { ...row.drain, overdue_at: at } }),
  ),
  node_taken_offline: updates(
    (e) => e.data.node_id,
    (row) => ({ ...row, status: 'offline' }),
  ),
  node_lost: updates(
    (e) => e.data.node_id,
    (row, e) => ({ ...row, status: 'lost', schedulable: false, drain: null, reclamation: reclamation(e) }),
  ),
  node_revoked: updates(
    (e) => e.data.node_id,
    // What was taken from it when it was lost stays the last word on that.
    (row, e) => ({
      ...row,
      status: 'revoked',
      schedulable: false,
      drain: null,
      reclamation: row.reclamation ?? reclamation(e),
    }),
  ),
  node_mesh_coordinator_set: updates(
    (e) => e.data.node_id,
    (row, { data }) => ({ ...row, mesh_coordinator: data.coordinator }),
  ),
  instance_placed: updates(
    (e) => e.data.node_id,
    (row, { data }) => ({ ...row, subnet_slots_used: Math.max(row.subnet_slots_used, data.subnet_slot + 1) }),
  ),
  node_retired: updates(
    (e) => e.data.node_id,
    (row, { at }) => ({
      ...row,
      status: 'retired',
      schedulable: false,
      armed_secrets: [],
      drain: null,
      retired_at: at,
    }),
  ),
  node_host_facts_changed: updates(
    (e) => e.data.node_id,
    (row, e) => ({
      ...row,
      host_cpu_count: e.data.cpu_count,
      host_memory_mb: e.data.memory_mb,
      host_kernel: e.data.kernel,
      host_docker_version: e.data.docker_version,
      host_bridge_netfilter: e.data.bridge_netfilter,
      agent_version: e.data.agent_version,
      runtime: e.data.runtime,
      ingress: e.data.ingress,
      host_facts_at: e.at,
    }),
  ),
});
