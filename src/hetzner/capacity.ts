/** What jobs may use of a host: thousandths of a vCPU, MiB, GB. */
export interface HostCapacity {
  readonly cpuMillis: number;
  readonly memoryMb: number;
  readonly diskGb: number;
}

/** Kept for the host itself (kernel, Docker, agent). Requirement, Provisioning. */
const HOST_RESERVE: HostCapacity = { cpuMillis: 500, memoryMb: 1024, diskGb: 20 };

/** A server type's size (`memory` and `disk` in the provider's GB) less the host reserve; undefined when nothing would be left. */
export function hostCapacity(type: {
  readonly cores: number;
  readonly memory: number;
  readonly disk: number;
}): HostCapacity | undefined {
  const capacity = {
    cpuMillis: Math.floor(type.cores * 1000) - HOST_RESERVE.cpuMillis,
    memoryMb: Math.floor(type.memory * 1024) - HOST_RESERVE.memoryMb,
    diskGb: Math.floor(type.disk) - HOST_RESERVE.diskGb,
  };
  return Object.values(capacity).every((amount) => amount > 0) ? capacity : undefined;
}
