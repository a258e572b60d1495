import * as v from 'valibot';
import { labelsOf, specSha256 } from '../labels.ts';
import type { WorkloadLabels, WorkloadSpec } from '../runtime.ts';

const BYTES_PER_MB = 1024 ** 2;
const NANO_CPUS_PER_MILLI = 1_000_000;
/** Docker refuses less. */
const MEMORY_MIN_MB = 6;
/** Docker refuses less. */
const CPU_MIN_MILLIS = 10;
/** Enough for a server with a thread for each of hundreds of requests; a fork bomb ends here. */
const PIDS_MAX = 1_024;
/** Where a database finds its data in its container. */
const DATA_MOUNT = '/data';

/** A container as far as it is looked at. */
export const Container = v.object({
  Id: v.string(),
  State: v.object({ Status: v.string(), Running: v.boolean(), Restarting: v.boolean(), ExitCode: v.number() }),
  Config: v.object({ Labels: v.nullish(v.record(v.string(), v.string())) }),
});
/** A container as far as it is looked at. */
export type Container = v.InferOutput<typeof Container>;

/** An entry of a list of containers. */
export const ListedContainer = v.object({ Labels: v.nullish(v.record(v.string(), v.string())) });

/** Labels as Docker keeps them. */
export type DockerLabels = Readonly<Record<string, string>> | null | undefined;

/** The label that all containers of this node carry. */
export const nodeLabel = (nodeId: string) => `pushleft.node_id=${nodeId}`;

/** A workload's container, which bears its name. */
export const containerName = (id: string) => `pushleft-${id}`;

/** What a container carries of ours; undefined when it is not all there. */
export function readLabels(labels: DockerLabels): WorkloadLabels | undefined {
  const id = labels?.['pushleft.instance_id'];
  const nodeId = labels?.['pushleft.node_id'];
  const generation = readInteger(labels?.['pushleft.generation']);
  const epoch = readInteger(labels?.['pushleft.epoch']);
  if (id === undefined || nodeId === undefined || generation === undefined || epoch === undefined) return undefined;
  const deploymentId = labels?.['pushleft.deployment_id'] ?? null;
  return { instance_id: id, deployment_id: deploymentId, generation, epoch, node_id: nodeId };
}

/** The port that a container was given; null for one that does not listen. */
export function readPort(labels: DockerLabels): number | null {
  return readInteger(labels?.['pushleft.port']) ?? null;
}

/** Whether a container runs what the workload is to be. */
export function isAsSpecified(labels: DockerLabels, spec: WorkloadSpec): boolean {
  return labels?.['pushleft.spec_sha256'] === specSha256(spec);
}

/**
 * The body of `POST /containers/create`. The host's network, because environments have none of their own; no capability and no way to gain
 * one; memory without swap. `dataDir` is the host's folder for a workload that keeps data.
 */
export function containerToCreate(spec: WorkloadSpec, nodeId: string, port: number | null, dataDir: string): object {
  const { instance_id, deployment_id, generation, epoch, node_id } = labelsOf(spec, nodeId);
  const memory = Math.max(spec.memoryMb, MEMORY_MIN_MB) * BYTES_PER_MB;
  return {
    Image: spec.image,
    Cmd: spec.command,
    Env: [
      `INSTANCE_ID=${spec.id}`,
      ...(port === null ? [] : [`PORT=${port}`]),
      ...(spec.keepsData ? [`DATA_DIR=${DATA_MOUNT}`] : []),
    ],
    Labels: {
      'pushleft.instance_id': instance_id,
      ...(deployment_id === null ? {} : { 'pushleft.deployment_id': deployment_id }),
      'pushleft.generation': String(generation),
      'pushleft.epoch': String(epoch),
      'pushleft.node_id': node_id,
      'pushleft.spec_sha256': specSha256(spec),
      ...(port === null ? {} : { 'pushleft.port': String(port) }),
    },
    HostConfig: {
      NetworkMode: 'host',
      Memory: memory,
      MemorySwap: memory,
      NanoCpus: Math.max(spec.cpuMillis, CPU_MIN_MILLIS) * NANO_CPUS_PER_MILLI,
      PidsLimit: PIDS_MAX,
      RestartPolicy: { Name: spec.run === 'service' ? 'unless-stopped' : 'no' },
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true'],
      LogConfig: { Type: 'json-file', Config: { 'max-size': '5m', 'max-file': '2' } },
      ...(spec.keepsData ? { Binds: [`${dataDir}:${DATA_MOUNT}`] } : {}),
    },
  };
}

function readInteger(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
