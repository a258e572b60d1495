import type { DeploymentState, InstanceState } from '../../src/domain/deployment/state.ts';
import type { RouteState } from '../../src/domain/ingress/state.ts';
import type { DeploymentDetails, DeploymentSummary } from '../../src/read/workloads.ts';
import { isoTime, moment, orDash } from './format.ts';
import { pairLines, tableLines } from './table.ts';

/** A deployment for --json: its row with times in ISO 8601. */
export function deploymentJson(deployment: DeploymentState) {
  const { created_at, live_at, ended_at, ...row } = deployment;
  return { ...row, created_at: isoTime(created_at), live_at: isoTime(live_at), ended_at: isoTime(ended_at) };
}

/** An instance for --json. */
export function instanceJson(instance: InstanceState) {
  const { requested_at, placed_at, ready_at, ended_at, cleaned_at, ...row } = instance;
  return {
    ...row,
    requested_at: isoTime(requested_at),
    placed_at: isoTime(placed_at),
    ready_at: isoTime(ready_at),
    ended_at: isoTime(ended_at),
    cleaned_at: isoTime(cleaned_at),
  };
}

/** A route for --json. */
export function routeJson(route: RouteState) {
  const { published_at, activated_at, failed_at, ended_at, ...row } = route;
  return {
    ...row,
    published_at: isoTime(published_at),
    activated_at: isoTime(activated_at),
    failed_at: isoTime(failed_at),
    ended_at: isoTime(ended_at),
  };
}

/** The list of deployments. */
export function deploymentTable(summaries: readonly DeploymentSummary[]): string[] {
  return tableLines(summaries, [
    { heading: 'NAME', value: ({ deployment }) => deployment.name },
    { heading: 'STATUS', value: ({ deployment }) => statusOf(deployment) },
    { heading: 'READY', value: ({ ready, wanted }) => `${ready}/${wanted}`, alignRight: true },
    { heading: 'POOL', value: ({ deployment }) => deployment.pool },
    { heading: 'HOSTNAMES', value: ({ deployment }) => deployment.hostnames.join(', ') || '-' },
    { heading: 'CREATED', value: ({ deployment }) => moment(deployment.created_at) },
  ]);
}

/** Where a deployment is, and why it is not where it should be. */
export function statusOf({ status, degraded_reason, failure }: DeploymentState): string {
  const why = status === 'degraded' ? degraded_reason : failure;
  return why === null ? status : `${status} (${why})`;
}

/** Everything of one deployment. */
export function deploymentLines({ deployment, instances, routes, nodeNames }: DeploymentDetails): string[] {
  const nodeOf = (id: string | null) => (id === null ? '-' : (nodeNames.get(id) ?? id));
  const { sealed_member_node_ids: members } = deployment;
  return [
    ...pairLines([
      ['name', deployment.name],
      ['id', deployment.deployment_id],
      ['status', statusOf(deployment)],
      ['organisation', deployment.org_id],
      ['pool', `${deployment.pool}, ${deployment.regions.join(', ')}`],
      ['environment', members === null ? 'open' : `sealed: ${members.map(nodeOf).join(', ')}`],
      ['created', moment(deployment.created_at)],
      ['live since', moment(deployment.live_at)],
    ]),
    '',
    ...tableLines(instances, [
      { heading: 'ROLE', value: ({ role, slot }) => `${role}.${slot}` },
      { heading: 'GENERATION', value: ({ generation }) => String(generation), alignRight: true },
      {
        heading: 'STATUS',
        value: ({ status, failure_reason }) => (failure_reason === null ? status : `${status} (${failure_reason})`),
      },
      { heading: 'NODE', value: ({ node_id }) => nodeOf(node_id) },
      { heading: 'ADDRESS', value: ({ address, port }) => (address === null ? '-' : `${address}:${orDash(port)}`) },
      { heading: 'READY', value: ({ ready_at }) => moment(ready_at) },
      { heading: 'ENDED', value: ({ ended_at }) => moment(ended_at) },
    ]),
    ...(routes.length === 0
      ? []
      : [
          '',
          ...tableLines(routes, [
            { heading: 'HOSTNAME', value: ({ hostname }) => hostname },
            { heading: 'GENERATION', value: ({ generation }) => String(generation), alignRight: true },
            {
              heading: 'STATUS',
              value: ({ status, failure_reason }) =>
                failure_reason === null ? status : `${status} (${failure_reason})`,
            },
            { heading: 'INGRESS', value: ({ node_id }) => nodeOf(node_id) },
            { heading: 'INSTANCES', value: ({ instance_ids }) => String(instance_ids.length), alignRight: true },
            { heading: 'ACTIVE', value: ({ activated_at }) => moment(activated_at) },
          ]),
        ]),
  ];
}
