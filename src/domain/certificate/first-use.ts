import { append, type Decision, type DecisionTime, nothing } from '../decision.ts';
import type { FleetEvent } from '../event/catalogue.ts';
import type { NodeState } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import { type AgentIdentity, authenticate } from './authenticate.ts';
import { revocations } from './revoke.ts';
import type { CertificateState } from './state.ts';

/**
 * Records the first lease request made with a certificate, and revokes every older one of the node, used or not: the agent has shown that
 * it holds the new one, so nothing can lock it out (requirement, Rotation). From then on its enrolment cannot be replayed. Refuses what
 * {@link authenticate} refuses.
 */
export function recordFirstUse(
  agent: AgentIdentity,
  state: {
    node: NodeState | undefined;
    certificate: CertificateState | undefined;
    /** Those of the node that are not revoked. */
    inForce: readonly CertificateState[];
  },
  time: DecisionTime,
): Decision {
  const identity = authenticate(agent, state, time);
  if (!identity.ok) return identity;
  const { node, certificate } = identity.value;
  if (certificate.first_used_at !== null) return nothing();
  const { node_id } = node;
  const events: FleetEvent[] = [
    {
      type: 'certificate_first_used',
      data: { certificate_id: certificate.certificate_id, node_id, fingerprint: agent.fingerprint },
    },
  ];
  const older = state.inForce.filter((c) => c.authorized_position < certificate.authorized_position);
  const superseded = older.map((c) => c.certificate_id);
  return append(nodeStream(node_id), ...events, ...revocations(node_id, superseded, 'superseded'));
}
