import type { Pool } from '../fields.ts';
import type { DegradedReason, Role } from './events.ts';

/**
 * Where a deployment is. `building` waits for its artifact, `deploying` for its instances and routes; `live` and `degraded` serve;
 * `removing` waits for what it has to be gone. `failed` and `removed` are final.
 */
export type DeploymentStatus = 'building' | 'deploying' | 'live' | 'degraded' | 'removing' | 'failed' | 'removed';

/** A deployment: the row of `deployments`. */
export interface DeploymentState {
  readonly deployment_id: string;
  readonly name: string;
  readonly org_id: string;
  readonly pool: Pool;
  readonly regions: readonly string[];
  readonly sealed_member_node_ids: readonly string[] | null;
  readonly roles: readonly Role[];
  readonly hostnames: readonly string[];
  readonly build: {
    readonly source_sha256: string;
    readonly source_bytes: number;
    readonly command: readonly string[];
    readonly timeout_seconds: number;
  } | null;
  readonly build_job_id: string | null;
  readonly spec_sha256: string;
  readonly status: DeploymentStatus;
  readonly degraded_reason: DegradedReason | null;
  readonly failure: string | null;
  readonly artifact_sha256: string | null;
  readonly created_at: number;
  readonly live_at: number | null;
  readonly ended_at: number | null;
}

/**
 * Where an instance is. `pending_placement` has no node; `reserved` has one and waits for the network's admission; `deploying` has a job;
 * `ready` runs; `done` has run once; `draining` is being taken down, and serves until then. `error`, `lost` and `removed`: `lost` is final,
 * its host may still run it.
 */
export type InstanceStatus =
  | 'pending_placement'
  | 'reserved'
  | 'deploying'
  | 'ready'
  | 'done'
  | 'error'
  | 'draining'
  | 'lost'
  | 'removed';

/** One instance: the row of `application_instances`. Rows are never deleted. */
export interface InstanceState {
  readonly instance_id: string;
  readonly deployment_id: string;
  readonly role: string;
  readonly slot: number;
  readonly generation: number;
  readonly replaces_instance_id: string | null;
  readonly cause: string;
  readonly status: InstanceStatus;
  readonly node_id: string | null;
  readonly job_id: string | null;
  readonly address: string | null;
  readonly port: number | null;
  readonly failure_reason: string | null;
  readonly requested_at: number;
  readonly placed_at: number | null;
  readonly ready_at: number | null;
  readonly ended_at: number | null;
  /** When the lost node that had it said that it is gone from there. */
  readonly cleaned_at: number | null;
}

/** A request of a network for an instance on a node: the row of `network_attachment_requests`. Slots of a node are never reused. */
export interface NetworkAttachmentState {
  readonly attachment_id: string;
  readonly deployment_id: string;
  readonly instance_id: string;
  readonly node_id: string;
  readonly subnet_slot: number;
  readonly status: 'requested' | 'admitted' | 'closed';
  readonly requested_at: number;
  /** When the node was heard whose word admitted it. */
  readonly heard_at: number | null;
  readonly closed_at: number | null;
}
