import { refuseOutdatedBundle } from '../ca/bundle.ts';
import type { CaState } from '../ca/state.ts';
import { append, type Decision, type DecisionTime, nothing, refuse, replying } from '../decision.ts';
import { nodeStream } from '../stream.ts';
import type { NodeState, NodeStatus } from './state.ts';

/** A secret with which a node that was enrolled before may enrol once more. `ttl_ms` counts from the database's clock. */
export interface ArmReenrollment {
  readonly node_id: string;
  readonly secret_sha256: string;
  readonly ttl_ms: number;
  /** The CAs in the bundle that is carried to the host beside the secret. */
  readonly ca_sha256s: readonly string[];
}

const refusals: Readonly<Record<NodeStatus, 'node_not_enrolled' | 'node_revoked' | 'node_retired' | undefined>> = {
  provisioning: 'node_not_enrolled',
  active: undefined,
  unhealthy: undefined,
  draining: undefined,
  offline: undefined,
  lost: undefined,
  revoked: 'node_revoked',
  retired: 'node_retired',
};

/**
 * Arms an enrolment secret for a node whose certificates have expired or were lost. The node keeps its status; its older certificates stay
 * good until the new one is used. Replies when the secret ends. The same secret again is nothing new. Refuses: node_unknown, node_not_enrolled, node_revoked,
 * node_retired, ca_bundle_outdated.
 */
export function armReenrollment(
  { node_id, secret_sha256, ttl_ms, ca_sha256s }: ArmReenrollment,
  { node, ca }: { node: NodeState | undefined; ca: CaState | undefined },
  { now }: DecisionTime,
): Decision {
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  const code = refusals[node.status];
  if (code !== undefined) return refuse(code, { node_id });
  const armed = node.armed_secrets.find(({ sha256 }) => sha256 === secret_sha256);
  if (armed !== undefined) return nothing({ expires_at: armed.expires_at });
  const outdated = refuseOutdatedBundle({ ca_sha256s }, ca);
  if (outdated !== undefined) return outdated;
  const expires_at = now + ttl_ms;
  const appended = append(nodeStream(node_id), {
    type: 'node_enrollment_secret_armed',
    data: { node_id, secret_sha256, expires_at, ca_sha256s: [...ca_sha256s] },
  });
  return replying(appended, { expires_at });
}
