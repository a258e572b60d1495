import { type AgentIdentity, authenticate } from '../certificate/authenticate.ts';
import type { CertificateState } from '../certificate/state.ts';
import { append, type Decision, type DecisionTime, nothing } from '../decision.ts';
import type { InstanceState } from '../deployment/state.ts';
import { nodeStream } from '../stream.ts';
import type { NodeState } from './state.ts';

/** A lost node says which of the instances that were fenced away from it are gone from its host. */
export interface ConfirmCleanup extends AgentIdentity {
  readonly instance_ids: readonly string[];
}

/**
 * Records what is gone from a lost node, so that it is not asked for it again. Only what was lost on this node and is not known to be gone
 * counts; the rest is nothing new. Refuses what {@link authenticate} refuses.
 */
export function confirmCleanup(
  command: ConfirmCleanup,
  state: {
    node: NodeState | undefined;
    certificate: CertificateState | undefined;
    instances: readonly (InstanceState | undefined)[];
  },
  time: DecisionTime,
): Decision {
  const identity = authenticate(command, state, time);
  if (!identity.ok) return identity;
  const { node_id } = identity.value.node;
  const gone = state.instances.flatMap((instance) =>
    instance?.node_id === node_id && instance.status === 'lost' && instance.cleaned_at === null
      ? [instance.instance_id]
      : [],
  );
  if (gone.length === 0) return nothing();
  return append(nodeStream(node_id), { type: 'node_cleanup_confirmed', data: { node_id, instance_ids: gone } });
}
