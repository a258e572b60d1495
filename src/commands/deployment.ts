import { type AdmitNetwork, admitNetwork } from '../domain/deployment/admit-network.ts';
import { type AssessDeployment, type AssessState, assessDeployment } from '../domain/deployment/assess.ts';
import { type Deploy, deploy, PRESENT } from '../domain/deployment/deploy.ts';
import { nextInstanceId } from '../domain/deployment/instance-id.ts';
import { type PlaceState, placeInstance } from '../domain/deployment/place.ts';
import { removeDeployment, retryDeployment } from '../domain/deployment/remove.ts';
import type { DeploymentState, InstanceState, InstanceStatus } from '../domain/deployment/state.ts';
import { type TeardownInstance, teardownInstance } from '../domain/deployment/teardown.ts';
import { type UnplaceInstance, type UnplaceState, unplaceInstance } from '../domain/deployment/unplace.ts';
import {
  type PublishRoute,
  type PublishState,
  publishRoute,
  type RemoveRoute,
  removeRoute,
} from '../domain/ingress/publish.ts';
import type { RouteState, RouteStatus } from '../domain/ingress/state.ts';
import type { NodeState } from '../domain/node/state.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import {
  activeAllocationsOfNode,
  deploymentsInStatus,
  instancesOfDeployment,
  routesOfDeployment,
  routesOfHostname,
} from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';

/** Instances that are not over, and those that have run once. */
const NOT_OVER = [
  'pending_placement',
  'reserved',
  'deploying',
  'ready',
  'done',
  'error',
  'draining',
] as const satisfies readonly InstanceStatus[];
const UNFINISHED = ['pending_placement', 'reserved', 'deploying', 'error'] as const satisfies readonly InstanceStatus[];
const RUNNING = ['ready', 'draining'] as const satisfies readonly InstanceStatus[];
const UNSETTLED = ['publishing', 'active', 'draining', 'failed'] as const satisfies readonly RouteStatus[];

/** See {@link deploy}. */
export const deployCommand: CommandDefinition<Deploy, Parameters<typeof deploy>[1]> = {
  name: 'deploy',
  async load(rows, { deployment }) {
    const [present, members] = await Promise.all([
      rows.find(deploymentsInStatus, { statuses: PRESENT }),
      Promise.all((deployment.sealed_member_node_ids ?? []).map((id) => rows.get('fleet_nodes', id))),
    ]);
    return { present, members };
  },
  decide: deploy,
};

/** See {@link removeDeployment}. */
export const removeDeploymentCommand: CommandDefinition<{ deployment_id: string }, DeploymentState | undefined> = {
  name: 'remove_deployment',
  load: (rows, { deployment_id }) => rows.get('deployments', deployment_id),
  decide: removeDeployment,
};

/** See {@link retryDeployment}. */
export const retryDeploymentCommand: CommandDefinition<
  { deployment_id: string },
  Parameters<typeof retryDeployment>[1]
> = {
  name: 'retry_deployment',
  async load(rows, { deployment_id }) {
    const [deployment, instances] = await Promise.all([
      rows.get('deployments', deployment_id),
      rows.find(instancesOfDeployment, { deployment_id, statuses: ['error'] }),
    ]);
    const successors = await Promise.all(
      instances.map((one) => rows.get('application_instances', nextInstanceId(one))),
    );
    return { deployment, instances, successors };
  },
  decide: retryDeployment,
};

/** An instance and its deployment. */
async function loadInstance(rows: Rows, instance_id: string) {
  const instance = await rows.get('application_instances', instance_id);
  const deployment = instance && (await rows.get('deployments', instance.deployment_id));
  return { instance, deployment };
}

/** A node, when it was heard, and the clock by which that counts. */
async function loadHeard(rows: Rows, nodeId: string | null | undefined) {
  const [node, liveness, scheduler] = await Promise.all([
    nodeId ? rows.get('fleet_nodes', nodeId) : undefined,
    nodeId ? rows.get('node_liveness', nodeId) : undefined,
    rows.get('scheduler', SCHEDULER),
  ]);
  return { node, liveness, scheduler };
}

/** Instances that have to have run to their end before the others begin, and have not. Nothing is read where no role is a release. */
async function unfinishedReleases(
  rows: Rows,
  { deployment }: { readonly deployment: DeploymentState | undefined },
): Promise<readonly InstanceState[]> {
  const releases = deployment?.roles.filter(({ run }) => run === 'release').map(({ role }) => role) ?? [];
  if (deployment === undefined || releases.length === 0) return [];
  const { deployment_id } = deployment;
  const instances = await rows.find(instancesOfDeployment, { deployment_id, statuses: UNFINISHED });
  return instances.filter(({ role }) => releases.includes(role));
}

/** See {@link unplaceInstance}. */
export const unplaceInstanceCommand: CommandDefinition<UnplaceInstance, UnplaceState> = {
  name: 'unplace_instance',
  async load(rows, { instance_id }) {
    const instance = await rows.get('application_instances', instance_id);
    const [node, current] = await Promise.all([
      instance?.node_id ? rows.get('fleet_nodes', instance.node_id) : undefined,
      instance?.job_id ? rows.get('jobs', instance.job_id) : undefined,
    ]);
    return { instance, node, current };
  },
  decide: unplaceInstance,
};

/** See {@link placeInstance}. */
export const placeInstanceCommand: CommandDefinition<{ instance_id: string; node_id: string }, PlaceState> = {
  name: 'place_instance',
  async load(rows, { instance_id, node_id }) {
    const [subject, heard, allocations] = await Promise.all([
      loadInstance(rows, instance_id),
      loadHeard(rows, node_id),
      rows.find(activeAllocationsOfNode, { node_id }),
    ]);
    const unfinished = await unfinishedReleases(rows, subject);
    return { ...subject, ...heard, allocations, unfinished };
  },
  decide: placeInstance,
};

/** See {@link admitNetwork}. */
export const admitNetworkCommand: CommandDefinition<AdmitNetwork, Parameters<typeof admitNetwork>[1]> = {
  name: 'admit_network',
  async load(rows, { instance_id }) {
    const instance = await rows.get('application_instances', instance_id);
    return { instance, ...(await loadHeard(rows, instance?.node_id)) };
  },
  decide: admitNetwork,
};

/** See {@link teardownInstance}. */
export const teardownInstanceCommand: CommandDefinition<TeardownInstance, Parameters<typeof teardownInstance>[1]> = {
  name: 'teardown_instance',
  async load(rows, { instance_id }) {
    const { instance, deployment } = await loadInstance(rows, instance_id);
    const [successor, current, routes] = await Promise.all([
      instance && rows.get('application_instances', nextInstanceId(instance)),
      instance?.job_id ? rows.get('jobs', instance.job_id) : undefined,
      instance
        ? rows.find(routesOfDeployment, { deployment_id: instance.deployment_id, statuses: ['active', 'publishing'] })
        : [],
    ]);
    return { instance, deployment, successor, current, routes };
  },
  decide: teardownInstance,
};

/** See {@link publishRoute}. */
export const publishRouteCommand: CommandDefinition<PublishRoute, PublishState> = {
  name: 'publish_route',
  async load(rows, { deployment_id, hostname, node_id }) {
    const [deployment, heard, instances, routes] = await Promise.all([
      rows.get('deployments', deployment_id),
      loadHeard(rows, node_id),
      rows.find(instancesOfDeployment, { deployment_id, statuses: RUNNING }),
      rows.find(routesOfHostname, { hostname }),
    ]);
    return { deployment, ...heard, instances, routes, hosts: await hostsOf(rows, routes) };
  },
  decide: publishRoute,
};

/** See {@link removeRoute}. */
export const removeRouteCommand: CommandDefinition<RemoveRoute, Parameters<typeof removeRoute>[1]> = {
  name: 'remove_route',
  async load(rows, { route_id }) {
    const route = await rows.get('ingress_routes', route_id);
    const [deployment, host, current] = await Promise.all([
      route && rows.get('deployments', route.deployment_id),
      route && rows.get('fleet_nodes', route.node_id),
      route?.job_id ? rows.get('jobs', route.job_id) : undefined,
    ]);
    return { route, deployment, host, current };
  },
  decide: removeRoute,
};

/** See {@link assessDeployment}. */
export const assessDeploymentCommand: CommandDefinition<AssessDeployment, AssessState> = {
  name: 'assess_deployment',
  async load(rows, { deployment_id }) {
    const [deployment, instances, all] = await Promise.all([
      rows.get('deployments', deployment_id),
      rows.find(instancesOfDeployment, { deployment_id, statuses: NOT_OVER }),
      rows.find(routesOfDeployment, { deployment_id, statuses: UNSETTLED }),
    ]);
    const routes = all.filter((route) => route.status !== 'failed' || isLatest(route, all));
    return { deployment, instances, routes, hosts: await hostsOf(rows, routes) };
  },
  decide: assessDeployment,
};

/** A failure that a later generation has made up for is history. */
function isLatest({ hostname, generation }: RouteState, routes: readonly RouteState[]): boolean {
  return routes.every((other) => other.hostname !== hostname || other.generation <= generation);
}

/** The hosts of routes, each once. */
async function hostsOf(rows: Rows, routes: readonly RouteState[]): Promise<NodeState[]> {
  const ids = [...new Set(routes.flatMap(({ node_id, status }) => (status === 'failed' ? [] : [node_id])))];
  const hosts = await Promise.all(ids.map((id) => rows.get('fleet_nodes', id)));
  return hosts.flatMap((host) => host ?? []);
}
