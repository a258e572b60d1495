import { type AgentIdentity, authenticate } from '../certificate/authenticate.ts';
import type { CertificateState } from '../certificate/state.ts';
import { append, type Decision, type DecisionTime, nothing } from '../decision.ts';
import { nodeStream } from '../stream.ts';
import type { NodeState } from './state.ts';

/**
 * An unhealthy node asks for work: it is well again. To be decided after it is written that it was heard, or the next sweep would call it
 * silent once more. In any other status nothing is new. Refuses what {@link authenticate} refuses.
 */
export function recoverNode(
  command: AgentIdentity,
  state: { node: NodeState | undefined; certificate: CertificateState | undefined },
  time: DecisionTime,
): Decision {
  const identity = authenticate(command, state, time);
  if (!identity.ok) return identity;
  const { node_id, status } = identity.value.node;
  if (status !== 'unhealthy') return nothing();
  return append(nodeStream(node_id), { type: 'node_recovered', data: { node_id } });
}
