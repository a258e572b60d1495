import { type Decision, refuse } from '../decision.ts';
import { roleOf } from '../deployment/place.ts';
import type { DeploymentState, InstanceState } from '../deployment/state.ts';
import type { FleetEvent } from '../event/catalogue.ts';
import { type JobToQueue, queued } from '../job/queued.ts';
import { isOpen, type JobState } from '../job/state.ts';
import type { NodeLiveness, NodeState } from '../node/state.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import { isFresh } from '../silence.ts';
import { deploymentStream } from '../stream.ts';
import type { RouteState } from './state.ts';

/** A failed route is tried again after this time, ms (requirement, Ingress). */
const ROUTE_RETRY_MS = 5 * 60_000;
/** So many failures of one hostname's relocation, and nobody tries again by itself (requirement, Ingress). */
export const MOST_ROUTE_FAILURES = 3;

/** A hostname that is to lead to these instances, by an ingress host, and the job that makes it so there. */
export interface PublishRoute {
  readonly deployment_id: string;
  readonly hostname: string;
  readonly node_id: string;
  readonly instance_ids: readonly string[];
  readonly job: JobToQueue;
}

/** What a route is decided on. `instances` are those of the deployment that run, `routes` all generations of the hostname's. */
export interface PublishState {
  readonly deployment: DeploymentState | undefined;
  readonly node: NodeState | undefined;
  readonly liveness: NodeLiveness | undefined;
  readonly scheduler: SchedulerState | undefined;
  readonly instances: readonly InstanceState[];
  readonly routes: readonly RouteState[];
  /** The hosts of the routes that are served now, and of nothing else. */
  readonly hosts: readonly NodeState[];
}

/** Deployments whose hostnames are served. */
const SERVED = ['deploying', 'live', 'degraded'] as const satisfies readonly DeploymentState['status'][];

/** Hosts that serve what they were told, whether or not they take new work. */
export function isInService(node: Pick<NodeState, 'status'> | undefined): boolean {
  return node?.status === 'active' || node?.status === 'unhealthy' || node?.status === 'draining';
}

/** The instances that a deployment's hostnames have to lead to; undefined while one of their slots has none that is ready. */
export function wantedInstances(
  deployment: DeploymentState,
  instances: readonly InstanceState[],
): readonly InstanceState[] | undefined {
  const serving = deployment.roles.find(({ serves_hostnames }) => serves_hostnames);
  if (serving === undefined) return undefined;
  const ready = instances.filter(
    (instance) => instance.status === 'ready' && roleOf(deployment, instance)?.role === serving.role,
  );
  return ready.length === serving.count ? ready : undefined;
}

/** Whether a hostname's routes let another one be published now: none is on its way, and the last failure is long enough ago. */
export function mayPublish(routes: readonly RouteState[], now: number): boolean {
  const last = routes.at(-1);
  if (last === undefined) return true;
  if (last.status === 'publishing') return false;
  if (last.status !== 'failed' || last.failures === 0) return true;
  return last.failures < MOST_ROUTE_FAILURES && now - (last.failed_at ?? 0) >= ROUTE_RETRY_MS;
}

/**
 * Publishes the next generation of a hostname's route: to every ready instance of the serving role once all its slots are, from an ingress
 * host that is active and fresh. What is served stays until that host says that it serves the new one. Refuses: deployment_ended,
 * instance_not_waiting (not exactly these are ready, or the route leads there already), node_not_eligible, job_target_unclear.
 */
export function publishRoute(command: PublishRoute, state: PublishState, { now }: { now: number }): Decision {
  const { deployment_id, hostname, node_id, instance_ids, job } = command;
  const { deployment, node, routes } = state;
  if (deployment === undefined || !SERVED.some((status) => status === deployment.status)) {
    return refuse('deployment_ended', {
      name: deployment?.name ?? deployment_id,
      status: deployment?.status ?? 'gone',
    });
  }
  const wanted = wantedInstances(deployment, state.instances)?.map(({ instance_id }) => instance_id);
  const active = routes.find(({ status }) => status === 'active');
  const host = state.hosts.find((one) => one.node_id === active?.node_id);
  const current = active !== undefined && staysOn(host) && sameIds(active.instance_ids, instance_ids);
  if (
    !deployment.hostnames.includes(hostname) ||
    !sameIds(wanted, instance_ids) ||
    current ||
    !mayPublish(routes, now)
  ) {
    return refuse('instance_not_waiting', { instance_id: hostname, status: 'not to be published now' });
  }
  const eligible =
    node?.status === 'active' &&
    node.pool === deployment.pool &&
    deployment.regions.includes(node.region) &&
    node.ingress !== null &&
    isFresh(state.liveness, state.scheduler);
  if (!eligible) return refuse('node_not_eligible', { node_id });
  if (job.node_id !== node_id) return refuse('job_target_unclear', { job_id: job.job_id });
  const last = routes.at(-1);
  const { events, bodies } = queued(job);
  const published: FleetEvent = {
    type: 'ingress_route_published',
    data: {
      deployment_id,
      hostname,
      generation: (last?.generation ?? 0) + 1,
      node_id,
      job_id: job.job_id,
      instance_ids: [...instance_ids],
      relocation: active !== undefined && (!isInService(host) || isAmputated(active, state.instances)),
      failures: last?.status === 'failed' ? last.failures : 0,
    },
  };
  return { events: [{ stream: deploymentStream(deployment_id), event: published }, ...events], reply: {}, bodies };
}

/** Whether a hostname may stay on its host: one that is drained with migration gives it away. */
function staysOn(host: NodeState | undefined): boolean {
  return isInService(host) && host?.drain?.migrate !== true;
}

/** Whether a route leads to something that does not run any more. */
function isAmputated({ instance_ids }: RouteState, running: readonly InstanceState[]): boolean {
  return instance_ids.some((id) => running.every(({ instance_id }) => instance_id !== id));
}

function sameIds(a: readonly string[] | undefined, b: readonly string[]): boolean {
  return a !== undefined && a.length === b.length && a.every((id) => b.includes(id));
}

/** A route that is to be taken away from its host, and the job that does it there. */
export interface RemoveRoute {
  readonly route_id: string;
  readonly job: JobToQueue;
}

/**
 * Takes a route away from a host that serves it no more for anybody: another host does, or its deployment is being removed. On its way
 * already is nothing new; where that failed it is asked for again. Refuses: instance_not_waiting (it is wanted), job_target_unclear.
 */
export function removeRoute(
  { route_id, job }: RemoveRoute,
  state: {
    route: RouteState | undefined;
    deployment: DeploymentState | undefined;
    host: NodeState | undefined;
    current: JobState | undefined;
  },
): Decision {
  const { route, deployment, host } = state;
  const ends = deployment?.status === 'removing' && (route?.status === 'active' || route?.status === 'publishing');
  if (route === undefined || !(route.status === 'draining' || ends) || !isInService(host)) {
    return refuse('instance_not_waiting', { instance_id: route_id, status: route?.status ?? 'unknown' });
  }
  if (route.status === 'draining' && isOpen(state.current)) return { events: [], reply: {}, bodies: [] };
  const { deployment_id, hostname, generation, node_id } = route;
  if (job.node_id !== node_id) return refuse('job_target_unclear', { job_id: job.job_id });
  const { events, bodies } = queued(job);
  const data = { deployment_id, hostname, generation, node_id, job_id: job.job_id };
  const removal = { type: 'ingress_route_removal_queued', data } as const;
  return { events: [{ stream: deploymentStream(deployment_id), event: removal }, ...events], reply: {}, bodies };
}
