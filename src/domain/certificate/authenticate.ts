import type { DecisionTime } from '../decision.ts';
import type { NodeState } from '../node/state.ts';
import { no, ok, type Result } from '../result.ts';
import type { CertificateState } from './state.ts';

/** What an agent's command is decided on: the fingerprint of its connection's certificate. Never a node id from a body. */
export interface AgentIdentity {
  readonly fingerprint: string;
}

/** A certificate that is in force and the node it speaks for. */
export interface Authenticated {
  readonly node: NodeState;
  readonly certificate: CertificateState;
}

/**
 * Says whether a certificate is in force at `now`. The one home of this rule: the gateway asks it for each request, and each agent
 * command asks it again under the lock. Refuses: certificate_unknown (never issued, revoked, other purpose), certificate_expired.
 */
export function authenticate(
  { fingerprint }: AgentIdentity,
  { node, certificate }: { node: NodeState | undefined; certificate: CertificateState | undefined },
  { now }: Pick<DecisionTime, 'now'>,
): Result<Authenticated> {
  if (node === undefined || certificate === undefined) return no('certificate_unknown');
  if (certificate.fingerprint !== fingerprint || certificate.node_id !== node.node_id) return no('certificate_unknown');
  if (certificate.purpose !== 'agent' || certificate.revoked_at !== null) return no('certificate_unknown');
  if (node.status === 'retired') return no('certificate_unknown');
  if (certificate.not_after <= now) return no('certificate_expired');
  return ok({ node, certificate });
}
