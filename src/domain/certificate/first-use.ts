import { append, type Decision, type DecisionTime, nothing } from '../decision.ts';
import type { NodeState } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import { type AgentIdentity, authenticate } from './authenticate.ts';
import type { CertificateState } from './state.ts';

/** Records the first lease request made with a certificate: from then on its enrolment cannot be replayed. */
export function recordFirstUse(
  agent: AgentIdentity,
  state: { node: NodeState | undefined; certificate: CertificateState | undefined },
  time: DecisionTime,
): Decision {
  const identity = authenticate(agent, state, time);
  if (!identity.ok) return identity;
  const { node, certificate } = identity.value;
  if (certificate.first_used_at !== null) return nothing();
  return append(nodeStream(node.node_id), {
    type: 'certificate_first_used',
    data: { certificate_id: certificate.certificate_id, node_id: node.node_id, fingerprint: agent.fingerprint },
  });
}
