import { type AllocationState, databaseAllocationId, instanceAllocationIds } from '../src/domain/allocation/state.ts';
import type { RecordedOf, Recording } from '../src/domain/event/recorded.ts';
import { creates, defineProjection, type Key, replacesEach, updatesEach } from './projection.ts';
import { defineTable, integer, text, timestamp } from './table.ts';

const table = defineTable<AllocationState>()({
  name: 'fleet_allocations',
  key: 'allocation_id',
  columns: {
    allocation_id: text,
    node_id: text,
    kind: text,
    deployment_id: text.orNull,
    instance_id: text.orNull,
    database_id: text.orNull,
    cpu_millis: integer,
    memory_mb: integer,
    disk_gb: integer,
    reserved_at: timestamp,
    released_at: timestamp.orNull,
  },
  indexes: [{ name: 'fleet_allocations_active', columns: ['node_id'], where: 'released_at IS NULL' }],
});

type Placed = RecordedOf<'instance_placed'>;

const both = (instanceId: string): readonly Key[] => Object.values(instanceAllocationIds(instanceId));

const release = (row: AllocationState, { at }: Recording): AllocationState => ({ ...row, released_at: at });

/** The network's slot has no size; what the instance uses is held by its role. */
function place({ at, data }: Placed, key: Key): AllocationState {
  const isRole = key === instanceAllocationIds(data.instance_id).role;
  const { cpu_millis, memory_mb, disk_gb } = isRole ? data : { cpu_millis: 0, memory_mb: 0, disk_gb: 0 };
  return {
    allocation_id: String(key),
    node_id: data.node_id,
    kind: isRole ? 'deployment_role' : 'network_attachment',
    deployment_id: data.deployment_id,
    instance_id: data.instance_id,
    database_id: null,
    cpu_millis,
    memory_mb,
    disk_gb,
    reserved_at: at,
    released_at: null,
  };
}

const released = updatesEach<AllocationState, RecordedOf<'node_lost'> | RecordedOf<'node_revoked'>>(
  ({ data }) => data.released_allocation_ids,
  release,
);

/** One row for each part of a node that is, or was, held. */
export const fleetAllocations = defineProjection(table, {
  // An instance that was put back and is placed again holds the same two parts anew, perhaps of another node.
  instance_placed: replacesEach(({ data }) => both(data.instance_id), place),
  instance_unplaced: updatesEach(({ data }: RecordedOf<'instance_unplaced'>) => both(data.instance_id), release),
  instance_removed: updatesEach(
    ({ data }: RecordedOf<'instance_removed'>) => (data.node_id === null ? [] : both(data.instance_id)),
    release,
  ),
  // What has run to its end uses nothing any more.
  instance_done: updatesEach(({ data }: RecordedOf<'instance_done'>) => both(data.instance_id), release),
  database_instance_created: creates(
    ({ data }) => databaseAllocationId(data.database_id),
    ({ at, data }): AllocationState => ({
      allocation_id: databaseAllocationId(data.database_id),
      node_id: data.node_id,
      kind: 'database',
      deployment_id: null,
      instance_id: null,
      database_id: data.database_id,
      cpu_millis: data.cpu_millis,
      memory_mb: data.memory_mb,
      disk_gb: data.disk_gb,
      reserved_at: at,
      released_at: null,
    }),
  ),
  database_instance_released: updatesEach(
    ({ data }: RecordedOf<'database_instance_released'>) => [databaseAllocationId(data.database_id)],
    release,
  ),
  node_lost: released,
  node_revoked: released,
});
