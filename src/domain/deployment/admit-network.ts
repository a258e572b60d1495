import { type Decision, refuse } from '../decision.ts';
import { type JobToQueue, queued } from '../job/queued.ts';
import type { NodeLiveness, NodeState } from '../node/state.ts';
import type { SchedulerState } from '../scheduler/state.ts';
import { isFresh } from '../silence.ts';
import { deploymentStream } from '../stream.ts';
import type { InstanceState } from './state.ts';

/** An instance whose network is to be admitted, and the job that then starts it on its node. */
export interface AdmitNetwork {
  readonly instance_id: string;
  readonly job: JobToQueue;
}

/**
 * Admits the network of an instance that has a place, and hands its job to that node. The evidence is the node's own: it was heard
 * within the freshness rule, and a host that runs containers says that bridged frames pass its firewall. Refuses: instance_not_waiting,
 * network_not_admitted, bridge_netfilter_off, job_target_unclear.
 */
export function admitNetwork(
  { instance_id, job }: AdmitNetwork,
  state: {
    instance: InstanceState | undefined;
    node: NodeState | undefined;
    liveness: NodeLiveness | undefined;
    scheduler: SchedulerState | undefined;
  },
): Decision {
  const { instance, node, liveness, scheduler } = state;
  if (instance?.status !== 'reserved' || instance.node_id === null) {
    return refuse('instance_not_waiting', { instance_id, status: instance?.status ?? 'unknown' });
  }
  const { deployment_id, node_id } = instance;
  if (job.node_id !== node_id) return refuse('job_target_unclear', { job_id: job.job_id });
  if (node?.status !== 'active' || liveness === undefined || !isFresh(liveness, scheduler)) {
    return refuse('network_not_admitted', { node_id });
  }
  if (node.runtime === 'docker' && node.host_bridge_netfilter === false) {
    return refuse('bridge_netfilter_off', { node_id });
  }
  const { events, bodies } = queued(job);
  const admitted = {
    type: 'network_admitted',
    data: { deployment_id, instance_id, node_id, heard_at: liveness.last_seen_at, job_id: job.job_id },
  } as const;
  return { events: [{ stream: deploymentStream(deployment_id), event: admitted }, ...events], reply: {}, bodies };
}
