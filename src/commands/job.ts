import { type CompleteJob, completeJob } from '../domain/job/complete.ts';
import { expireLease } from '../domain/job/expire.ts';
import { type LeaseJob, type LeaseState, leasableKinds, leaseJob, type Offer } from '../domain/job/lease.ts';
import { type QueueJob, queueJob } from '../domain/job/queue.ts';
import type { JobState } from '../domain/job/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import {
  jobByLeaseRequest,
  jobsLeasedTo,
  openJobsOfNode,
  queuedForNode,
  queuedForPool,
} from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';
import { loadAgent } from './agent.ts';
import { loadPurpose } from './purpose.ts';

async function loadLeasedJob(rows: Rows, { job_id }: { job_id: string }) {
  const [job, lease] = await Promise.all([rows.get('jobs', job_id), rows.get('job_leases', job_id)]);
  return { job, lease, purpose: await loadPurpose(rows, job) };
}

/** See {@link queueJob}. */
export const queueJobCommand: CommandDefinition<QueueJob, Parameters<typeof queueJob>[1]> = {
  name: 'queue_job',
  async load(rows, { job_id, node_id }) {
    const [job, node, open] = await Promise.all([
      rows.get('jobs', job_id),
      node_id === null ? undefined : rows.get('fleet_nodes', node_id),
      node_id === null ? [] : rows.find(openJobsOfNode, { node_id, statuses: ['queued', 'leased'] }),
    ]);
    return { job, node, openOnNode: open.length };
  },
  decide: queueJob,
};

async function loadOffer(rows: Rows, job: JobState | undefined): Promise<Offer | undefined> {
  if (job === undefined) return undefined;
  const [payload, purpose] = await Promise.all([rows.get('job_payloads', job.job_id), loadPurpose(rows, job)]);
  return { job, payload, purpose };
}

/** See {@link leaseJob}. */
export const leaseJobCommand: CommandDefinition<LeaseJob, LeaseState> = {
  name: 'lease_job',
  async load(rows, { request_id, kinds, ...agent }) {
    const [{ node, certificate }, [again]] = await Promise.all([
      loadAgent(rows, agent),
      rows.find(jobByLeaseRequest, { request_id }),
    ]);
    if (node === undefined || again !== undefined) {
      const requested = await loadOffer(rows, again);
      return { node, certificate, requested, forNode: undefined, forPool: undefined, held: 0 };
    }
    const leasable = leasableKinds(node, kinds);
    const [[own], [pooled]] = await Promise.all([
      rows.find(queuedForNode, { node_id: node.node_id, kinds: leasable }),
      node.schedulable ? rows.find(queuedForPool, { pool: node.pool, kinds: leasable }) : [],
    ]);
    const [forNode, forPool, held] = await Promise.all([
      loadOffer(rows, own),
      loadOffer(rows, pooled),
      own === undefined && pooled !== undefined ? rows.find(jobsLeasedTo, { node_id: node.node_id }) : [],
    ]);
    return { node, certificate, requested: undefined, forNode, forPool, held: held.length };
  },
  decide: leaseJob,
};

/** See {@link completeJob}. */
export const completeJobCommand: CommandDefinition<CompleteJob, Parameters<typeof completeJob>[1]> = {
  name: 'complete_job',
  async load(rows, { job_id, ...agent }) {
    const [{ node, certificate }, leased] = await Promise.all([
      loadAgent(rows, agent),
      loadLeasedJob(rows, { job_id }),
    ]);
    return { node, certificate, ...leased };
  },
  decide: completeJob,
};

/** See {@link expireLease}. */
export const expireLeaseCommand: CommandDefinition<{ job_id: string }, Parameters<typeof expireLease>[1]> = {
  name: 'expire_lease',
  load: loadLeasedJob,
  decide: expireLease,
};
