import { refuseOutdatedBundle } from '../ca/bundle.ts';
import type { CaState } from '../ca/state.ts';
import type { CertificateState } from '../certificate/state.ts';
import { append, type Decision, type DecisionTime, nothing, refuse, replying } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import { nodeStream } from '../stream.ts';
import type { ProvisioningFailure } from './events.ts';
import type { NodeState } from './state.ts';

/** How long an enrolment secret lasts (requirement: 15 minutes). */
export const ENROLLMENT_SECRET_TTL_MS = 15 * 60_000;

/** Starts a node's life. The same request again is nothing new. Refuses: node_exists, node_name_taken. */
export function requestNode(
  request: EventData<'node_provisioning_requested'>,
  { node, named }: { node: NodeState | undefined; named: NodeState | undefined },
): Decision {
  if (node !== undefined) {
    const same = node.name === request.name && node.pool === request.pool && node.region === request.region;
    return same ? nothing() : refuse('node_exists', { node_id: request.node_id });
  }
  if (named !== undefined) return refuse('node_name_taken', { name: request.name });
  return append(nodeStream(request.node_id), { type: 'node_provisioning_requested', data: request });
}

/** Records what jobs may use of a node. Refuses: node_unknown. */
export function recordCapacity(capacity: EventData<'node_capacity_recorded'>, node: NodeState | undefined): Decision {
  if (node === undefined) return refuse('node_unknown', { node: capacity.node_id });
  const same =
    node.cpu_millis === capacity.cpu_millis &&
    node.memory_mb === capacity.memory_mb &&
    node.disk_gb === capacity.disk_gb &&
    node.architecture === capacity.architecture;
  if (same) return nothing();
  return append(nodeStream(node.node_id), { type: 'node_capacity_recorded', data: capacity });
}

/**
 * Arms an enrolment secret before a server is created with it; earlier ones stay valid until they end, because a late create of a
 * process that died may carry one of them. `ttl_ms` counts from the database's clock, `ca_sha256s` are the CAs in the user-data. Refuses:
 * node_unknown, node_not_provisioning, ca_bundle_outdated.
 */
export function armSecret(
  secret: { node_id: string; secret_sha256: string; ttl_ms: number; ca_sha256s: readonly string[] },
  { node, ca }: { node: NodeState | undefined; ca: CaState | undefined },
  { now }: DecisionTime,
): Decision {
  const refusal = refuseUnlessProvisioning(secret.node_id, node);
  if (refusal !== undefined) return refusal;
  if (node?.armed_secrets.some(({ sha256 }) => sha256 === secret.secret_sha256)) return nothing();
  const outdated = refuseOutdatedBundle(secret, ca);
  if (outdated !== undefined) return outdated;
  return append(nodeStream(secret.node_id), {
    type: 'node_enrollment_secret_armed',
    data: {
      node_id: secret.node_id,
      secret_sha256: secret.secret_sha256,
      expires_at: now + secret.ttl_ms,
      ca_sha256s: [...secret.ca_sha256s],
    },
  });
}

/** Records that the node's server exists, created by us now or found by our label. Refuses: node_unknown. */
export function recordServer(
  server: { node_id: string; server_id: number; adopted: boolean },
  node: NodeState | undefined,
): Decision {
  if (node === undefined) return refuse('node_unknown', { node: server.node_id });
  if (node.server_id === server.server_id) return nothing();
  const type = server.adopted ? 'node_server_adopted' : 'node_server_requested';
  return append(nodeStream(node.node_id), { type, data: { node_id: node.node_id, server_id: server.server_id } });
}

/** Records what the provider says of the running server. Refuses: node_unknown. */
export function recordServerRunning(server: EventData<'node_server_running'>, node: NodeState | undefined): Decision {
  if (node === undefined) return refuse('node_unknown', { node: server.node_id });
  const waitsForServer = node.provision_state === 'pending' || node.provision_state === 'server_requested';
  const same =
    node.server_id === server.server_id && node.public_ipv4 === server.public_ipv4 && node.location === server.location;
  if (same && !waitsForServer) return nothing();
  return append(nodeStream(node.node_id), { type: 'node_server_running', data: server });
}

/** A wish to give a node up: for a reason that the provider gave, or (none given) if no secret is left that could be redeemed. */
export interface FailProvisioning {
  readonly node_id: string;
  readonly reason?: Exclude<ProvisioningFailure, 'enrollment_secret_expired'>;
}

/**
 * Gives a node up when its server is broken or gone, or when every secret its server may hold has ended and none was redeemed. Says
 * `failed: false` and when the last one ends while there is hope, and also before this attempt has armed any: the secrets of an attempt
 * that failed before do not count against it. Refuses: node_unknown, node_not_provisioning.
 */
export function failProvisioning(
  { node_id, reason }: FailProvisioning,
  { node, certificates }: { node: NodeState | undefined; certificates: readonly CertificateState[] },
  { now }: DecisionTime,
): Decision {
  if (node?.provision_state === 'failed') return nothing({ failed: true });
  const refusal = refuseUnlessProvisioning(node_id, node);
  if (refusal !== undefined) return refusal;
  const armed = node?.armed_secrets ?? [];
  const begun = armed.length > 0 || node?.provision_state !== 'pending';
  const redeemed = certificates.flatMap((c) => (c.fingerprint === null ? (c.secret_expires_at ?? []) : []));
  const ends = [...armed.map((s) => s.expires_at), ...redeemed];
  const last = Math.max(0, ...ends);
  // A server that came up without any armed secret (a create of a process that died before a retry) can never enrol.
  const hopeless = begun && (ends.length === 0 ? node?.provision_state === 'awaiting_enrollment' : last <= now);
  if (reason === undefined && !hopeless) return nothing({ failed: false, expires_at: last });
  const failed = append(nodeStream(node_id), {
    type: 'node_provisioning_failed',
    data: { node_id, reason: reason ?? 'enrollment_secret_expired' },
  });
  return replying(failed, { failed: true });
}

/** Puts a failed node back to the start, after its server was dealt with. Refuses: node_unknown, node_not_failed. */
export function retryProvisioning({ node_id }: { node_id: string }, node: NodeState | undefined): Decision {
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.provision_state !== 'failed') {
    return refuse('node_not_failed', { node_id, provision_state: node.provision_state });
  }
  return append(nodeStream(node_id), { type: 'node_provisioning_retried', data: { node_id } });
}

/** Records that the provider no longer has the node's server. Refuses: node_unknown. */
export function recordServerDeleted({ node_id }: { node_id: string }, node: NodeState | undefined): Decision {
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.server_id === null) return nothing();
  return append(nodeStream(node_id), { type: 'node_server_deleted', data: { node_id, server_id: node.server_id } });
}

function refuseUnlessProvisioning(nodeId: string, node: NodeState | undefined): Decision | undefined {
  if (node === undefined) return refuse('node_unknown', { node: nodeId });
  if (node.status === 'provisioning') return undefined;
  return refuse('node_not_provisioning', { node_id: nodeId, status: node.status });
}
