import { append, type Decision, nothing, refuse } from '../decision.ts';
import type { NodeState } from '../node/state.ts';
import { deploymentStream } from '../stream.ts';
import { nextInstanceId } from './instance-id.ts';
import { roleOf } from './place.ts';
import type { DeploymentState, InstanceState } from './state.ts';

/** A service whose node is drained, and that is to run elsewhere before it ends there. */
export interface MigrateInstance {
  readonly instance_id: string;
}

/** What that is decided on. */
export interface MigrateState {
  readonly instance: InstanceState | undefined;
  readonly deployment: DeploymentState | undefined;
  readonly node: NodeState | undefined;
  readonly successor: InstanceState | undefined;
  /** Instances of the node that are being replaced already, and still there. */
  readonly inFlight: number;
}

/**
 * Queues the replacement of a service on a node that is drained with migration. The one that is replaced serves until the other is ready
 * and every hostname has followed it. Replaced already: nothing new. What runs once is left to its end; databases never move. Refuses:
 * instance_not_waiting (its node is not drained in this way, so many are on their way already, or it is no service that runs).
 */
export function migrateInstance({ instance_id }: MigrateInstance, state: MigrateState): Decision {
  const { instance, deployment, node, successor, inFlight } = state;
  if (instance === undefined || deployment === undefined) {
    return refuse('instance_not_waiting', { instance_id, status: 'unknown' });
  }
  if (successor !== undefined) return nothing();
  const drained = node?.status === 'draining' && node.drain?.migrate === true;
  const mayBegin = inFlight < (node?.drain?.max_in_flight ?? 1);
  const goesOn = ['deploying', 'live', 'degraded'].includes(deployment.status);
  const isService = roleOf(deployment, instance)?.run === 'service' && instance.status === 'ready';
  if (!drained || !mayBegin || !goesOn || !isService) {
    return refuse('instance_not_waiting', { instance_id, status: instance.status });
  }
  const { deployment_id, role, slot, generation } = instance;
  return append(deploymentStream(deployment_id), {
    type: 'instance_replacement_queued',
    data: {
      deployment_id,
      instance_id: nextInstanceId(instance),
      role,
      slot,
      generation: generation + 1,
      replaces_instance_id: instance_id,
      cause: 'migration',
    },
  });
}
