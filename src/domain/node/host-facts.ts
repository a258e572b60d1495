import { type AgentIdentity, authenticate } from '../certificate/authenticate.ts';
import type { CertificateState } from '../certificate/state.ts';
import { append, type Decision, type DecisionTime, nothing } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import { nodeStream } from '../stream.ts';
import type { NodeState } from './state.ts';

/** Facts of a host that seldom change. What moves all the time (free disk) is telemetry and never an event. */
export type HostFacts = Omit<EventData<'node_host_facts_changed'>, 'node_id'>;

/**
 * Whether what a host reports differs from what the log knows of it. Of a node in whose name two hosts speak nothing is learnt: its
 * facts would change with every request.
 */
export function hostFactsDiffer(facts: HostFacts, node: NodeState): boolean {
  if (node.conflict !== null) return false;
  return !(
    node.host_cpu_count === facts.cpu_count &&
    node.host_memory_mb === facts.memory_mb &&
    node.host_kernel === facts.kernel &&
    node.host_docker_version === facts.docker_version &&
    node.host_bridge_netfilter === facts.bridge_netfilter &&
    node.agent_version === facts.agent_version &&
    node.runtime === facts.runtime &&
    node.ingress === facts.ingress
  );
}

/** Records changed host facts. Refuses what {@link authenticate} refuses. */
export function recordHostFacts(
  { facts, ...agent }: AgentIdentity & { facts: HostFacts },
  state: { node: NodeState | undefined; certificate: CertificateState | undefined },
  time: DecisionTime,
): Decision {
  const identity = authenticate(agent, state, time);
  if (!identity.ok) return identity;
  const { node } = identity.value;
  if (!hostFactsDiffer(facts, node)) return nothing();
  return append(nodeStream(node.node_id), {
    type: 'node_host_facts_changed',
    data: { node_id: node.node_id, ...facts },
  });
}
