import { type CompleteJob, completeJob } from '../domain/job/complete.ts';
import { expireLease } from '../domain/job/expire.ts';
import { type LeaseJob, type LeaseState, leaseJob } from '../domain/job/lease.ts';
import { type QueueJob, queueJob } from '../domain/job/queue.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import { jobByLeaseRequest, queuedForNode, queuedForPool } from '../transactor/finders.ts';
import { loadAgent } from './agent.ts';

/** See {@link queueJob}. */
export const queueJobCommand: CommandDefinition<QueueJob, Parameters<typeof queueJob>[1]> = {
  name: 'queue_job',
  prefetch: (job) => ({ jobs: [job.job_id], ...(job.node_id === null ? {} : { fleet_nodes: [job.node_id] }) }),
  load: async (rows, job) => ({
    job: await rows.get('jobs', job.job_id),
    node: job.node_id === null ? undefined : await rows.get('fleet_nodes', job.node_id),
  }),
  decide: queueJob,
};

/** See {@link leaseJob}. */
export const leaseJobCommand: CommandDefinition<LeaseJob, LeaseState> = {
  name: 'lease_job',
  async load(rows, { request_id, kinds, ...agent }) {
    const { node, certificate } = await loadAgent(rows, agent);
    const [requested] = await rows.find(jobByLeaseRequest, { request_id });
    if (node === undefined || requested !== undefined) {
      return { node, certificate, requested, forNode: undefined, forPool: undefined };
    }
    const [forNode] = await rows.find(queuedForNode, { node_id: node.node_id, kinds });
    const [forPool] =
      forNode === undefined && node.schedulable ? await rows.find(queuedForPool, { pool: node.pool, kinds }) : [];
    return { node, certificate, requested, forNode, forPool };
  },
  decide: leaseJob,
};

/** See {@link completeJob}. */
export const completeJobCommand: CommandDefinition<CompleteJob, Parameters<typeof completeJob>[1]> = {
  name: 'complete_job',
  prefetch: ({ job_id }) => ({ jobs: [job_id], job_leases: [job_id] }),
  load: async (rows, command) => ({
    ...(await loadAgent(rows, command)),
    job: await rows.get('jobs', command.job_id),
    lease: await rows.get('job_leases', command.job_id),
  }),
  decide: completeJob,
};

/** See {@link expireLease}. */
export const expireLeaseCommand: CommandDefinition<{ job_id: string }, Parameters<typeof expireLease>[1]> = {
  name: 'expire_lease',
  prefetch: ({ job_id }) => ({ jobs: [job_id], job_leases: [job_id] }),
  load: async (rows, { job_id }) => ({
    job: await rows.get('jobs', job_id),
    lease: await rows.get('job_leases', job_id),
  }),
  decide: expireLease,
};
