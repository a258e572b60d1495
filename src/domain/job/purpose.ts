import type { DatabaseState } from '../database/state.ts';
import type { DeploymentState, InstanceState } from '../deployment/state.ts';
import type { FleetEvent, NewEvent } from '../event/catalogue.ts';
import type { RouteState } from '../ingress/state.ts';
import { databaseStream, deploymentStream } from '../stream.ts';

/** What a job is for: at most one of these has its id. The route that was active before, and the instance that is taken over from. */
export interface Purpose {
  readonly instance?: InstanceState | undefined;
  readonly superseded?: InstanceState | undefined;
  readonly route?: RouteState | undefined;
  readonly activeRoute?: RouteState | undefined;
  readonly database?: DatabaseState | undefined;
  readonly deployment?: DeploymentState | undefined;
}

/** What an agent says came of its work: of each kind of job, what the log keeps of its result. */
export type Report =
  | { readonly kind: 'ready'; readonly address: string | null; readonly port: number | null }
  | { readonly kind: 'done' }
  | { readonly kind: 'removed' }
  | { readonly kind: 'route'; readonly serving: boolean }
  | { readonly kind: 'database'; readonly address: string; readonly port: number }
  | { readonly kind: 'built'; readonly artifact_sha256: string; readonly artifact_bytes: number }
  | { readonly kind: 'other' };

/** How a job ended for what it was for. */
export type JobEnd =
  | { readonly succeeded: true; readonly report: Report }
  | { readonly succeeded: false; readonly reason: 'job_failed' | 'attempts_exhausted' };

/**
 * The events that follow for what a job was for, when it has ended. What has gone on meanwhile (another job works on it, it is over)
 * takes no notice of it.
 */
export function afterJob(purpose: Purpose, end: JobEnd): NewEvent[] {
  const { instance, route, database, deployment } = purpose;
  if (instance !== undefined) return inDeployment(instance, instanceEvents(instance, purpose.superseded, end));
  if (route !== undefined) return inDeployment(route, routeEvents(route, purpose.activeRoute, end));
  if (deployment !== undefined) return inDeployment(deployment, buildEvents(deployment, end));
  if (database !== undefined) {
    const stream = databaseStream(database.database_id);
    return databaseEvents(database, end).map((event) => ({ stream, event }));
  }
  return [];
}

function inDeployment({ deployment_id }: { deployment_id: string }, events: readonly FleetEvent[]): NewEvent[] {
  return events.map((event) => ({ stream: deploymentStream(deployment_id), event }));
}

function instanceEvents(instance: InstanceState, superseded: InstanceState | undefined, end: JobEnd): FleetEvent[] {
  const { deployment_id, instance_id, node_id, status } = instance;
  if (node_id === null) return [];
  const data = { deployment_id, instance_id, node_id };
  if (status === 'draining') {
    // A teardown that failed is asked for again by the scheduler (the instance keeps draining, without a job that is open).
    return end.succeeded && end.report.kind === 'removed' ? [{ type: 'instance_removed', data }] : [];
  }
  if (status !== 'deploying') return [];
  if (!end.succeeded) return [{ type: 'instance_failed', data: { ...data, reason: end.reason } }];
  switch (end.report.kind) {
    case 'ready': {
      const { address, port } = end.report;
      const supersedes_instance_id = superseded?.status === 'ready' ? superseded.instance_id : null;
      return [{ type: 'instance_ready', data: { ...data, address, port, supersedes_instance_id } }];
    }
    case 'done':
      return [{ type: 'instance_done', data }];
    case 'removed':
    case 'route':
    case 'database':
    case 'built':
    case 'other':
      return [];
  }
}

function routeEvents(route: RouteState, active: RouteState | undefined, end: JobEnd): FleetEvent[] {
  const { deployment_id, hostname, generation, node_id, status } = route;
  const data = { deployment_id, hostname, generation, node_id };
  if (status === 'draining') {
    return end.succeeded && end.report.kind === 'route' ? [{ type: 'ingress_route_removed', data }] : [];
  }
  if (status !== 'publishing') return [];
  if (!end.succeeded || end.report.kind !== 'route') {
    const reason = end.succeeded ? 'job_failed' : end.reason;
    return [{ type: 'ingress_route_failed', data: { ...data, reason, failures: route.failures + 1 } }];
  }
  const relocated: FleetEvent[] =
    active === undefined
      ? []
      : [
          {
            type: 'ingress_route_relocated',
            data: {
              deployment_id: active.deployment_id,
              hostname,
              generation: active.generation,
              node_id: active.node_id,
              to_generation: generation,
              to_node_id: node_id,
            },
          },
        ];
  // The old one first: a hostname has one active route (the unique index says so row by row).
  return [...relocated, { type: 'ingress_route_activated', data }];
}

function databaseEvents({ database_id, node_id, status }: DatabaseState, end: JobEnd): FleetEvent[] {
  if (status !== 'creating') return [];
  if (!end.succeeded) return [{ type: 'database_instance_failed', data: { database_id, node_id, reason: end.reason } }];
  if (end.report.kind !== 'database') return [];
  const { address, port } = end.report;
  return [{ type: 'database_instance_ready', data: { database_id, node_id, address, port } }];
}

function buildEvents({ deployment_id, status }: DeploymentState, end: JobEnd): FleetEvent[] {
  if (status !== 'building') return [];
  if (!end.succeeded) {
    return [{ type: 'deployment_failed', data: { deployment_id, reason: 'build_failed', code: 'job_failed' } }];
  }
  if (end.report.kind !== 'built') return [];
  const { artifact_sha256, artifact_bytes } = end.report;
  return [{ type: 'deployment_built', data: { deployment_id, artifact_sha256, artifact_bytes } }];
}
