import type { NodeOccupancy } from '../../src/read/occupancy.ts';
import { cpus, disk, memory } from './node.ts';

/** Lines: what is on a node. */
export function occupancyLines({
  node,
  instances,
  allocations,
  leased,
  hostnames,
  databases,
}: NodeOccupancy): string[] {
  return [
    `${node.name} has ${allocations} active allocations, ${instances.length} instances, ${leased.length} live leases, ` +
      `${hostnames.length} hostnames, ${databases.length} databases`,
    ...instances.map(({ instance_id, status }) => `  ${instance_id}  ${status}`),
    ...hostnames.map((hostname) => `  ${hostname}  served from here`),
    ...databases.map(({ name, status }) => `  database ${name}  ${status}: its data is on this node's disk`),
  ];
}

/** Lines: what would be without the node. */
export function withoutItLines(occupancy: NodeOccupancy): string[] {
  const { nodes, cpu_millis, memory_mb, disk_gb } = occupancy.leftInPool;
  const { pool, region } = occupancy.node;
  return [
    ...occupancyLines(occupancy),
    `without it pool ${pool} in ${region} has ${nodes} schedulable nodes with ${cpus(cpu_millis)} CPU, ${memory(memory_mb)} and ${disk(disk_gb)} free`,
  ];
}

/** The same for --json. */
export function occupancyJson({ instances, allocations, leased, hostnames, databases, leftInPool }: NodeOccupancy) {
  return {
    allocations,
    instances: instances.map(({ instance_id, status }) => ({ instance_id, status })),
    leases: leased.map(({ job_id, kind }) => ({ job_id, kind })),
    hostnames,
    databases: databases.map(({ database_id, name, status }) => ({ database_id, name, status })),
    capacity_left: leftInPool,
  };
}
