import type { Pool } from '../fields.ts';

/**
 * Where a node is in its life. `offline`: drained, and switched off on purpose. `lost` was silent for too long, `revoked` is not trusted
 * any more; neither comes back.
 */
export type NodeStatus =
  | 'provisioning'
  | 'active'
  | 'unhealthy'
  | 'draining'
  | 'offline'
  | 'lost'
  | 'revoked'
  | 'retired';

/** How far provisioning has come; `fleet provision --resume` goes on from here. */
export type ProvisionState = 'pending' | 'server_requested' | 'awaiting_enrollment' | 'enrolled' | 'failed';

/** An enrolment secret that a host may hold: its SHA-256, when it ends (ms), and by which CAs its host believes the gateway. */
export interface ArmedSecret {
  readonly sha256: string;
  readonly expires_at: number;
  readonly ca_sha256s: readonly string[];
}

/** Two hosts that were seen to use one identity in turn: the boot ids and addresses of the two, and when (ms). */
export interface IdentityConflict {
  readonly boot_ids: readonly string[];
  readonly addresses: readonly string[];
  readonly seen_at: number;
}

/** A drain: whether and how services move away first, and until when (ms). */
export interface Drain {
  readonly migrate: boolean;
  readonly max_in_flight: number | null;
  readonly deadline_at: number | null;
  readonly started_at: number;
  /** When the deadline passed with something still on the node. */
  readonly overdue_at: number | null;
}

/** What was taken from a lost or revoked node. */
export interface Reclamation {
  readonly silent_ms: number | null;
  readonly at: number;
  readonly fenced_jobs: readonly { readonly job_id: string; readonly kind: string }[];
  readonly lost_instance_ids: readonly string[];
  readonly unplaced_instance_ids: readonly string[];
  readonly replacement_instance_ids: readonly string[];
  readonly released_allocations: number;
  readonly stranded_database_ids: readonly string[];
}

/** A node as the log tells it: the row of `fleet_nodes`. Times are ms; capacity is what jobs may use. */
export interface NodeState {
  readonly node_id: string;
  readonly name: string;
  readonly pool: Pool;
  readonly provider: string;
  readonly region: string;
  readonly server_type: string;
  readonly image: string;
  readonly placement_group: string | null;
  readonly status: NodeStatus;
  readonly schedulable: boolean;
  readonly provision_state: ProvisionState;
  readonly failure_reason: string | null;
  readonly armed_secrets: readonly ArmedSecret[];
  readonly server_id: number | null;
  readonly location: string | null;
  readonly public_ipv4: string | null;
  readonly public_ipv6: string | null;
  readonly private_ipv4: string | null;
  readonly cpu_millis: number | null;
  readonly memory_mb: number | null;
  readonly disk_gb: number | null;
  readonly architecture: string | null;
  readonly host_cpu_count: number | null;
  readonly host_memory_mb: number | null;
  readonly host_kernel: string | null;
  readonly host_docker_version: string | null;
  readonly host_bridge_netfilter: boolean | null;
  readonly agent_version: string | null;
  readonly runtime: 'docker' | 'process' | null;
  /** What serves hostnames on it. */
  readonly ingress: 'caddy' | 'embedded' | null;
  readonly host_facts_at: number | null;
  /** Until the node is enrolled anew. */
  readonly conflict: IdentityConflict | null;
  readonly requested_at: number;
  readonly enrolled_at: number | null;
  readonly admitted_at: number | null;
  /** It coordinates the management mesh and is never given up by itself. */
  readonly mesh_coordinator: boolean;
  /** How many slots of its subnet were ever given away. */
  readonly subnet_slots_used: number;
  readonly drain: Drain | null;
  readonly reclamation: Reclamation | null;
  readonly retired_at: number | null;
}

/** When a node was last heard (telemetry, not a fold): ms, and by the clock of silence. */
export interface NodeLiveness {
  readonly node_id: string;
  readonly last_seen_at: number;
  /** What the clock of silence (`SchedulerState.heard_ms`) showed when it was written that the node was heard; null: not known. */
  readonly heard_ms: number | null;
  readonly data_disk_free_gb: number | null;
}

/** When a node was last heard for sure: the later of telemetry and enrolment. */
export function lastSeenAt(node: NodeState, liveness: NodeLiveness | undefined): number | null {
  if (liveness === undefined) return node.enrolled_at;
  return Math.max(liveness.last_seen_at, node.enrolled_at ?? 0);
}
