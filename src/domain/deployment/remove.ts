import { append, type Decision, nothing, refuse } from '../decision.ts';
import type { FleetEvent } from '../event/catalogue.ts';
import { deploymentStream } from '../stream.ts';
import { nextInstanceId } from './instance-id.ts';
import type { DeploymentState, InstanceState } from './state.ts';

/** Asks for the end of a deployment: the scheduler takes routes and instances away. Repeated: nothing new. Refuses: deployment_unknown. */
export function removeDeployment(
  { deployment_id }: { readonly deployment_id: string },
  deployment: DeploymentState | undefined,
): Decision {
  if (deployment === undefined) return refuse('deployment_unknown', { deployment: deployment_id });
  if (deployment.status === 'removing' || deployment.status === 'removed') return nothing();
  return append(deploymentStream(deployment_id), { type: 'deployment_removal_requested', data: { deployment_id } });
}

/** Replaces a deployment's failed instances, one generation later. None failed: nothing new. Refuses: deployment_unknown, deployment_ended. */
export function retryDeployment(
  { deployment_id }: { readonly deployment_id: string },
  {
    deployment,
    instances,
    successors,
  }: {
    deployment: DeploymentState | undefined;
    instances: readonly InstanceState[];
    successors: readonly (InstanceState | undefined)[];
  },
): Decision {
  if (deployment === undefined) return refuse('deployment_unknown', { deployment: deployment_id });
  const { name, status } = deployment;
  if (status === 'removing' || status === 'removed' || status === 'failed') {
    return refuse('deployment_ended', { name, status });
  }
  const failed = instances.filter((instance, i) => instance.status === 'error' && successors[i] === undefined);
  return append(
    deploymentStream(deployment_id),
    ...failed.map((instance): FleetEvent => {
      const { role, slot, generation, instance_id } = instance;
      const next = { instance_id: nextInstanceId(instance), role, slot, generation: generation + 1 };
      return {
        type: 'instance_replacement_queued',
        data: { deployment_id, ...next, replaces_instance_id: instance_id, cause: 'retry' },
      };
    }),
  );
}
