import { createHash } from 'node:crypto';
import { JobFailed } from '../job-runner.ts';
import type { WorkloadLabels, WorkloadRef, WorkloadSpec } from './runtime.ts';

/** The labels of a workload on this node. */
export function labelsOf(spec: WorkloadSpec, nodeId: string): WorkloadLabels {
  return {
    instance_id: spec.id,
    deployment_id: spec.deploymentId,
    generation: spec.generation,
    epoch: spec.epoch,
    node_id: nodeId,
  };
}

/** Tells a workload that stands from one that is to be another: digest of all that it runs with. */
export function specSha256({ run, image, command, cpuMillis, memoryMb, listens, keepsData }: WorkloadSpec): string {
  const parts = [run, image, command, cpuMillis, memoryMb, listens, keepsData];
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}

/**
 * Refuses to start what is of the past: a later generation of its slot, or a workload of a later epoch in it, is among those present.
 * Throws JobFailed `superseded`.
 */
export function refuseSuperseded(spec: WorkloadSpec, present: readonly WorkloadLabels[]): void {
  const later = present
    .filter((labels) => slotOf(labels.instance_id) === slotOf(spec.id))
    .find(({ generation, epoch }) => epoch > spec.epoch || (epoch === spec.epoch && generation > spec.generation));
  if (later === undefined) return;
  const { generation, epoch } = later;
  throw new JobFailed('superseded', `generation ${generation} of epoch ${epoch} of ${spec.id} is on the host`);
}

/** Refuses to touch what carries other labels. Throws JobFailed `not_owned`. */
export function refuseForeign(ref: WorkloadRef, labels: WorkloadLabels, nodeId: string): void {
  const differing = [
    labels.node_id === nodeId ? undefined : 'node_id',
    labels.instance_id === ref.id ? undefined : 'instance_id',
    labels.generation === ref.generation ? undefined : 'generation',
  ].filter((name) => name !== undefined);
  if (differing.length > 0) throw notOwned(ref.id, `carries another ${differing.join(', ')}`);
}

/** The refusal of what is not ours. */
export function notOwned(id: string, why: string): JobFailed {
  return new JobFailed('not_owned', `what is called ${id} on this host ${why}; it was not touched`);
}

/** An instance's place in its deployment: its id without the generation, which is its last part. A database's id has no such part. */
function slotOf(id: string): string {
  return id.includes('.') ? id.slice(0, id.lastIndexOf('.')) : id;
}
