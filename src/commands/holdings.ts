import { nextInstanceId } from '../domain/deployment/instance-id.ts';
import type { DeploymentState, InstanceState } from '../domain/deployment/state.ts';
import type { Holdings } from '../domain/node/reclaim.ts';
import {
  activeAllocationsOfNode,
  databasesOfNode,
  deploymentByBuildJob,
  instancesOfNode,
  jobsLeasedTo,
  openJobsOfNode,
  routesOfNode,
} from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';

/** Instances that are on a node, whatever they do there. One that has run once has nothing left to lose. */
const ON_NODE = [
  'reserved',
  'deploying',
  'ready',
  'error',
  'draining',
] as const satisfies readonly InstanceState['status'][];

/** Everything that a node has: see {@link Holdings}. */
export async function loadHoldings(rows: Rows, node_id: string): Promise<Holdings> {
  const [own, held, instances, allocations, databases, publishing] = await Promise.all([
    rows.find(openJobsOfNode, { node_id, statuses: ['queued', 'leased'] }),
    rows.find(jobsLeasedTo, { node_id }),
    rows.find(instancesOfNode, { node_id, statuses: ON_NODE }),
    rows.find(activeAllocationsOfNode, { node_id }),
    rows.find(databasesOfNode, { node_id, statuses: ['creating', 'ready', 'error', 'stranded'] }),
    rows.find(routesOfNode, { node_id, statuses: ['publishing'] }),
  ]);
  const jobs = [...own, ...held.filter(({ job_id }) => own.every((job) => job.job_id !== job_id))];
  const builds = jobs.filter(({ kind }) => kind === 'build');
  const [successors, deployments, building] = await Promise.all([
    Promise.all(instances.map((instance) => rows.get('application_instances', nextInstanceId(instance)))),
    Promise.all(
      [...new Set([...instances, ...publishing].map(({ deployment_id }) => deployment_id))].map((id) =>
        rows.get('deployments', id),
      ),
    ),
    Promise.all(builds.map(({ job_id }) => rows.find(deploymentByBuildJob, { job_id }))),
  ]);
  return {
    jobs,
    instances,
    successors: new Map(successors.flatMap((next) => replacing(next))),
    allocations,
    databases,
    publishing,
    deployments: byId([...deployments, ...building.flat()]),
  };
}

function replacing(instance: InstanceState | undefined): readonly (readonly [string, InstanceState])[] {
  const replaced = instance?.replaces_instance_id ?? undefined;
  return instance === undefined || replaced === undefined ? [] : [[replaced, instance]];
}

function byId(deployments: readonly (DeploymentState | undefined)[]): ReadonlyMap<string, DeploymentState> {
  return new Map(deployments.flatMap((row) => (row === undefined ? [] : [[row.deployment_id, row]])));
}
