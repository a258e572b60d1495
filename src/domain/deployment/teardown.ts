import { append, type Decision, nothing, refuse } from '../decision.ts';
import type { EventData } from '../event/catalogue.ts';
import type { RouteState } from '../ingress/state.ts';
import { type JobToQueue, queued } from '../job/queued.ts';
import { isOpen, type JobState } from '../job/state.ts';
import { deploymentStream } from '../stream.ts';
import type { DeploymentState, InstanceState } from './state.ts';

/** An instance that is to be taken down, and the job that does it on its node; null for one that has no node. */
export interface TeardownInstance {
  readonly instance_id: string;
  readonly job: JobToQueue | null;
}

/**
 * Takes an instance down that is not wanted any more: its deployment is being removed, another one has taken over from it, or it failed
 * and is replaced. One that serves a hostname stays until no route leads to it. Without a node it is gone at once. Taken down already is
 * nothing new, a teardown that failed is asked for again. Refuses: instance_not_waiting (it is wanted), job_target_unclear.
 */
export function teardownInstance(
  { instance_id, job }: TeardownInstance,
  state: {
    instance: InstanceState | undefined;
    deployment: DeploymentState | undefined;
    successor: InstanceState | undefined;
    /** The job that works on it now. */
    current: JobState | undefined;
    routes: readonly RouteState[];
  },
): Decision {
  const { instance } = state;
  if (instance === undefined) return refuse('instance_not_waiting', { instance_id, status: 'unknown' });
  const { deployment_id, status, node_id } = instance;
  if (['removed', 'lost', 'done'].includes(status) || (status === 'draining' && isOpen(state.current)))
    return nothing();
  const cause = causeOf(instance, state.deployment, state.successor);
  if (cause === undefined || isServed(instance_id, state.routes)) {
    return refuse('instance_not_waiting', { instance_id, status });
  }
  const stream = deploymentStream(deployment_id);
  if (node_id === null) {
    return append(stream, { type: 'instance_removed', data: { deployment_id, instance_id, node_id: null } });
  }
  if (job?.node_id !== node_id) return refuse('job_target_unclear', { job_id: job?.job_id ?? instance_id });
  const { events, bodies } = queued(job);
  const data = { deployment_id, instance_id, node_id, job_id: job.job_id, cause };
  return { events: [{ stream, event: { type: 'instance_teardown_queued', data } }, ...events], reply: {}, bodies };
}

/** Whether requests may still come to it. */
function isServed(instanceId: string, routes: readonly RouteState[]): boolean {
  return routes.some(
    ({ status, instance_ids }) => (status === 'active' || status === 'publishing') && instance_ids.includes(instanceId),
  );
}

function causeOf(
  { status }: InstanceState,
  deployment: DeploymentState | undefined,
  successor: InstanceState | undefined,
): EventData<'instance_teardown_queued'>['cause'] | undefined {
  if (deployment === undefined || deployment.status === 'removing' || deployment.status === 'failed') return 'removal';
  if (status === 'draining') return 'migration';
  if (status === 'error' && successor !== undefined) return 'retry';
  return undefined;
}
