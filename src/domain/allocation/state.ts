/** What a part of a node is held for. */
export type AllocationKind = 'deployment_role' | 'network_attachment' | 'database';

/** A part of a node that is held: the row of `fleet_allocations`. It is active while `released_at` is null. */
export interface AllocationState {
  readonly allocation_id: string;
  readonly node_id: string;
  readonly kind: AllocationKind;
  readonly deployment_id: string | null;
  readonly instance_id: string | null;
  readonly database_id: string | null;
  readonly cpu_millis: number;
  readonly memory_mb: number;
  readonly disk_gb: number;
  readonly reserved_at: number;
  readonly released_at: number | null;
}

/** Ids of what an instance holds on its node. */
export function instanceAllocationIds(instanceId: string): { readonly role: string; readonly network: string } {
  return { role: `${instanceId}/role`, network: `${instanceId}/network` };
}

/** Id of what a database holds on its node. */
export function databaseAllocationId(databaseId: string): string {
  return `${databaseId}/database`;
}

/** What is used of a node. */
export interface Used {
  readonly cpu_millis: number;
  readonly memory_mb: number;
  readonly disk_gb: number;
}

/** The sum of allocations. */
export function sumOf(allocations: readonly Used[]): Used {
  return allocations.reduce<Used>(
    (sum, { cpu_millis, memory_mb, disk_gb }) => ({
      cpu_millis: sum.cpu_millis + cpu_millis,
      memory_mb: sum.memory_mb + memory_mb,
      disk_gb: sum.disk_gb + disk_gb,
    }),
    { cpu_millis: 0, memory_mb: 0, disk_gb: 0 },
  );
}
