import { append, type Decision, nothing } from '../decision.ts';
import type { FleetEvent } from '../event/catalogue.ts';
import { isInService } from '../ingress/publish.ts';
import type { RouteState } from '../ingress/state.ts';
import type { NodeState } from '../node/state.ts';
import { deploymentStream } from '../stream.ts';
import type { DegradedReason } from './events.ts';
import type { DeploymentState, InstanceState } from './state.ts';

/** `unplaceable`: the scheduler found no node for one of its instances, and why. */
export interface AssessDeployment {
  readonly deployment_id: string;
  readonly unplaceable: 'no_eligible_node' | 'placement_rejected' | 'no_ingress_node' | null;
}

/** What a deployment is judged by: its instances that are not over, its routes that are not, and the hosts of those. */
export interface AssessState {
  readonly deployment: DeploymentState | undefined;
  readonly instances: readonly InstanceState[];
  readonly routes: readonly RouteState[];
  readonly hosts: readonly NodeState[];
}

/**
 * Says where a deployment is: live once its services are ready and its hostnames served; degraded when a live one lacks something that
 * cannot be had at once; recovered when it is whole again and nothing is served from a host that is gone; removed when nothing of it is
 * left; failed when a release of one that was never live failed. What has not changed is nothing new.
 */
export function assessDeployment({ deployment_id, unplaceable }: AssessDeployment, state: AssessState): Decision {
  const { deployment } = state;
  if (deployment === undefined) return nothing();
  const event = nextEvent(deployment, state, unplaceable);
  return event === undefined ? nothing() : append(deploymentStream(deployment_id), event);
}

function nextEvent(
  deployment: DeploymentState,
  state: AssessState,
  unplaceable: AssessDeployment['unplaceable'],
): FleetEvent | undefined {
  const data = { deployment_id: deployment.deployment_id };
  switch (deployment.status) {
    case 'deploying':
      if (isWhole(deployment, state)) return { type: 'deployment_became_live', data };
      return releaseFailed(deployment, state)
        ? { type: 'deployment_failed', data: { ...data, reason: 'release_failed', code: 'job_failed' } }
        : undefined;
    case 'live': {
      const reason = isWhole(deployment, state) ? undefined : lackOf(state, unplaceable);
      return reason === undefined ? undefined : { type: 'deployment_degraded', data: { ...data, reason } };
    }
    case 'degraded':
      return isWhole(deployment, state) ? { type: 'deployment_recovered', data } : undefined;
    case 'removing':
      return isGone(state) ? { type: 'deployment_removed', data } : undefined;
    case 'building':
    case 'failed':
    case 'removed':
      return undefined;
  }
}

/** All services are ready, what runs first has run, and every hostname is served by a host in service from instances that run. */
function isWhole(deployment: DeploymentState, { instances, routes, hosts }: AssessState): boolean {
  const filled = deployment.roles.every(({ role, run, count }) => {
    const of = instances.filter((instance) => instance.role === role);
    if (run === 'job') return true;
    return of.filter(({ status }) => status === (run === 'service' ? 'ready' : 'done')).length >= count;
  });
  const running = new Set(
    instances.flatMap(({ instance_id, status }) => (status === 'ready' || status === 'draining' ? [instance_id] : [])),
  );
  const served = deployment.hostnames.every((hostname) =>
    routes.some(
      (route) =>
        route.hostname === hostname &&
        route.status === 'active' &&
        isInService(hosts.find(({ node_id }) => node_id === route.node_id)) &&
        route.instance_ids.every((id) => running.has(id)),
    ),
  );
  return filled && served;
}

/** Why a live deployment cannot be whole at once; undefined while it is only on its way. */
function lackOf(
  { instances, routes }: AssessState,
  unplaceable: AssessDeployment['unplaceable'],
): DegradedReason | undefined {
  if (instances.some(({ status }) => status === 'error')) return 'instance_failed';
  if (routes.some(({ status, relocation, failures }) => status === 'failed' && relocation && failures > 0)) {
    return 'relocation_failed';
  }
  return unplaceable ?? undefined;
}

function releaseFailed({ roles }: DeploymentState, { instances }: AssessState): boolean {
  const releases = new Set(roles.flatMap(({ role, run }) => (run === 'release' ? [role] : [])));
  return instances.some(({ role, status }) => status === 'error' && releases.has(role));
}

/** Nothing runs and nothing is served, but on hosts that are gone themselves. */
function isGone({ instances, routes, hosts }: AssessState): boolean {
  const over = instances.every(({ status }) => status === 'removed' || status === 'lost' || status === 'done');
  const unserved = routes.every(
    ({ status, node_id }) =>
      status === 'removed' || status === 'failed' || !isInService(hosts.find((host) => host.node_id === node_id)),
  );
  return over && unserved;
}
