import type { DeploymentState, DeploymentStatus, InstanceState, InstanceStatus } from '../domain/deployment/state.ts';
import type { RouteState, RouteStatus } from '../domain/ingress/state.ts';
import { no, ok, type Result } from '../domain/result.ts';
import {
  deploymentsInStatus,
  deploymentsNamed,
  instancesOfDeployment,
  routesOfDeployment,
} from '../transactor/finders.ts';
import type { FleetView, ViewMoment } from './fleet-view.ts';

const PRESENT = [
  'building',
  'deploying',
  'live',
  'degraded',
  'removing',
  'failed',
] as const satisfies readonly DeploymentStatus[];
const ALL = [...PRESENT, 'removed'] as const satisfies readonly DeploymentStatus[];
const INSTANCES = [
  'pending_placement',
  'reserved',
  'deploying',
  'ready',
  'done',
  'error',
  'draining',
  'lost',
  'removed',
] as const satisfies readonly InstanceStatus[];
const ROUTES = ['publishing', 'active', 'draining', 'failed', 'removed'] as const satisfies readonly RouteStatus[];

/** A deployment with everything it has or had. Names of nodes by id. */
export interface DeploymentDetails {
  readonly deployment: DeploymentState;
  /** Slot by slot, the newest generation first. */
  readonly instances: readonly InstanceState[];
  /** Hostname by hostname, the newest generation first. */
  readonly routes: readonly RouteState[];
  readonly nodeNames: ReadonlyMap<string, string>;
  readonly moment: ViewMoment;
  readonly live: boolean;
}

/** A line of the list of deployments: how many instances of services there are to be, and how many there are. */
export interface DeploymentSummary {
  readonly deployment: DeploymentState;
  readonly wanted: number;
  readonly ready: number;
}

/** The deployments that are there, or all there ever were, in the order of their names. */
export async function listDeployments(view: FleetView, all: boolean): Promise<readonly DeploymentSummary[]> {
  const found = await view.rows.find(deploymentsInStatus, { statuses: all ? ALL : PRESENT });
  const summaries = await Promise.all(
    found.map(async (deployment) => {
      const services = deployment.roles.filter(({ run }) => run === 'service');
      const instances = await view.rows.find(instancesOfDeployment, {
        deployment_id: deployment.deployment_id,
        statuses: ['ready'],
      });
      return {
        deployment,
        wanted: services.reduce((sum, { count }) => sum + count, 0),
        ready: instances.filter(({ role }) => services.some((one) => one.role === role)).length,
      };
    }),
  );
  return summaries.sort(
    (a, b) =>
      a.deployment.name.localeCompare(b.deployment.name, 'en') || a.deployment.created_at - b.deployment.created_at,
  );
}

/** The deployment that an operator means by its id or its name: of several that had the name, the last. Refuses: deployment_unknown. */
export async function resolveDeployment(view: FleetView, reference: string): Promise<Result<DeploymentState>> {
  const [byId, named] = await Promise.all([
    view.rows.get('deployments', reference),
    view.rows.find(deploymentsNamed, { name: reference }),
  ]);
  const found = byId ?? named.at(-1);
  return found === undefined ? no('deployment_unknown', { deployment: reference }) : ok(found);
}

/** A deployment with its instances and routes. Refuses: deployment_unknown. */
export async function readDeployment(view: FleetView, reference: string): Promise<Result<DeploymentDetails>> {
  const resolved = await resolveDeployment(view, reference);
  if (!resolved.ok) return resolved;
  const deployment = resolved.value;
  const { deployment_id } = deployment;
  const [instances, routes, nodes] = await Promise.all([
    view.rows.find(instancesOfDeployment, { deployment_id, statuses: INSTANCES }),
    view.rows.find(routesOfDeployment, { deployment_id, statuses: ROUTES }),
    view.nodes({}),
  ]);
  return ok({
    deployment,
    instances: instances.toSorted(bySlot),
    routes: routes.toSorted((a, b) => a.hostname.localeCompare(b.hostname, 'en') || b.generation - a.generation),
    nodeNames: namesOf(nodes),
    moment: view.moment,
    live: view.telemetry !== null,
  });
}

/** Names of nodes by id. */
export function namesOf(
  nodes: readonly { readonly node_id: string; readonly name: string }[],
): ReadonlyMap<string, string> {
  return new Map(nodes.map(({ node_id, name }) => [node_id, name]));
}

function bySlot(a: InstanceState, b: InstanceState): number {
  return a.role.localeCompare(b.role, 'en') || a.slot - b.slot || b.generation - a.generation;
}
