import {
  admitNetworkCommand,
  assessDeploymentCommand,
  placeInstanceCommand,
  publishRouteCommand,
  removeRouteCommand,
  teardownInstanceCommand,
  unplaceInstanceCommand,
} from '../../src/commands/deployment.ts';
import { migrateInstanceCommand, noteOverdueDrainCommand } from '../../src/commands/node-exit.ts';
import { ensureApplicationJob, publishIngressJob, teardownApplicationJob } from '../../src/commands/workload-jobs.ts';
import type { DeploymentState, InstanceState } from '../../src/domain/deployment/state.ts';
import { isInService, mayPublish, wantedInstances } from '../../src/domain/ingress/publish.ts';
import type { RouteState } from '../../src/domain/ingress/state.ts';
import { EPOCH } from '../../src/log/epoch.ts';
import type { World } from './world.ts';

/** One command of the scheduler's. False when it was refused. */
export type Act = () => Promise<boolean>;

/**
 * What the scheduler would do now, in its order, looked up in the folded rows instead of by SQL. Each act is one command, so a crash is to
 * stop between two of them.
 */
export function* schedulerActs(world: World): Generator<Act> {
  for (const { node_id, drain } of world.nodes()) {
    if (drain !== null) yield () => world.schedule(noteOverdueDrainCommand, { node_id });
  }
  for (const { instance_id } of world.instances(({ status }) => status === 'reserved' || status === 'deploying')) {
    yield () => world.schedule(unplaceInstanceCommand, { instance_id });
  }
  for (const { instance_id } of world.instances(isMigrating(world))) {
    yield () => world.schedule(migrateInstanceCommand, { instance_id });
  }
  for (const instance of world.instances(({ status }) => status === 'pending_placement'))
    yield () => place(world, instance);
  for (const instance of world.instances(({ status }) => status === 'reserved')) yield () => admit(world, instance);
  for (const deployment of world.deployments()) {
    for (const hostname of deployment.hostnames) yield () => route(world, deployment.deployment_id, hostname);
  }
  for (const instance of world.instances(isLeaving(world))) yield () => teardown(world, instance);
  for (const one of world.routes(({ status }) => status === 'draining' || status === 'active')) {
    yield () => removeRoute(world, one);
  }
  for (const { deployment_id } of world.deployments()) yield () => assess(world, deployment_id);
}

async function place(world: World, instance: InstanceState): Promise<boolean> {
  for (const { node_id } of world.nodes()) {
    const placed = await world.schedule(placeInstanceCommand, { instance_id: instance.instance_id, node_id });
    if (placed) return true;
  }
  await world.schedule(assessDeploymentCommand, {
    deployment_id: instance.deployment_id,
    unplaceable: 'no_eligible_node',
  });
  return false;
}

function admit(world: World, { instance_id }: InstanceState): Promise<boolean> {
  const instance = world.instance(instance_id);
  const deployment = world.deployment(instance.deployment_id);
  const job = ensureApplicationJob(world.newId(), deployment, instance, EPOCH);
  return world.schedule(admitNetworkCommand, { instance_id, job });
}

async function route(world: World, deployment_id: string, hostname: string): Promise<boolean> {
  const deployment = world.deployment(deployment_id);
  const instances = wantedInstances(
    deployment,
    world.instances((one) => one.deployment_id === deployment_id),
  );
  const routes = world.routes((one) => one.hostname === hostname).toSorted((a, b) => a.generation - b.generation);
  if (instances === undefined || !mayPublish(routes, world.now)) return false;
  const active = routes.find(({ status }) => status === 'active');
  const present = world.nodes().find(({ node_id }) => node_id === active?.node_id);
  const host =
    isInService(present) && present?.drain?.migrate !== true
      ? present
      : world.nodes().find(({ status, ingress }) => status === 'active' && ingress);
  if (host === undefined) return false;
  const instance_ids = instances.map(({ instance_id }) => instance_id);
  const generation = (routes.at(-1)?.generation ?? 0) + 1;
  const order = { deployment, hostname, generation, node_id: host.node_id, instances };
  const job = publishIngressJob(world.newId(), order, EPOCH);
  return world.schedule(publishRouteCommand, { deployment_id, hostname, node_id: host.node_id, instance_ids, job });
}

/** Instances on nodes that are drained with migration. */
function isMigrating(world: World): (instance: InstanceState) => boolean {
  const drained = new Set(world.nodes().flatMap(({ node_id, drain }) => (drain?.migrate ? [node_id] : [])));
  return ({ status, node_id }) => status === 'ready' && node_id !== null && drained.has(node_id);
}

/** Instances that may have to be taken down; the decision says whether they do. */
function isLeaving(world: World): (instance: InstanceState) => boolean {
  return ({ status, deployment_id }) => {
    const ends = ['removing', 'failed'].includes(world.deployment(deployment_id).status);
    return status === 'draining' || status === 'error' || (ends && !['removed', 'lost', 'done'].includes(status));
  };
}

function teardown(world: World, { instance_id }: InstanceState): Promise<boolean> {
  const instance = world.instance(instance_id);
  const job = instance.node_id === null ? null : teardownApplicationJob(world.newId(), instance, null);
  return world.schedule(teardownInstanceCommand, { instance_id, job });
}

function removeRoute(
  world: World,
  { route_id, hostname, generation, node_id, deployment_id }: RouteState,
): Promise<boolean> {
  const deployment: DeploymentState = world.deployment(deployment_id);
  const job = publishIngressJob(world.newId(), { deployment, hostname, generation, node_id, instances: [] }, EPOCH);
  return world.schedule(removeRouteCommand, { route_id, job });
}

function assess(world: World, deployment_id: string): Promise<boolean> {
  return world.schedule(assessDeploymentCommand, { deployment_id, unplaceable: null });
}
