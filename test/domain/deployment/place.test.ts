import { describe, expect, test } from 'vitest';
import type { AllocationState } from '../../../src/domain/allocation/state.ts';
import { type PlaceState, placeInstance } from '../../../src/domain/deployment/place.ts';
import { MOST_INSTANCES } from '../../../src/domain/node/limits.ts';
import { make, NODE, sample } from '../../support/events.ts';
import { refusal } from '../../support/given.ts';

const { deployment_id, instance_id } = sample.instance_requested.data;
const command = { instance_id, node_id: NODE };

/** A node with room for anything, on which so many instances have a place that takes nothing of it. */
function crowded(instances: number): PlaceState {
  const nothing = { node_id: NODE, cpu_millis: 0, memory_mb: 0, disk_gb: 0 };
  const allocations = Array.from({ length: instances }, () => [
    { ...nothing, kind: 'deployment_role' },
    { ...nothing, kind: 'network_attachment' },
  ]);
  return {
    instance: { ...sample.instance_requested.data, status: 'pending_placement' },
    deployment: { ...sample.deployment_created.data, status: 'deploying' },
    node: {
      node_id: NODE,
      status: 'active',
      schedulable: true,
      pool: 'application',
      region: 'fsn1',
      cpu_millis: 1_000_000,
      memory_mb: 1_000_000,
      disk_gb: 1_000_000,
      subnet_slots_used: instances,
    },
    liveness: { node_id: NODE, last_seen_at: 0, heard_ms: 0, data_disk_free_gb: null },
    scheduler: { heard_ms: 0 },
    allocations: allocations.flat() as readonly object[] as readonly AllocationState[],
    unfinished: [],
  } as unknown as PlaceState;
}

describe('a node with room for what an instance wants', () => {
  test('one place is left: instance_placed', () => {
    const placed = make('instance_placed', { deployment_id, instance_id, subnet_slot: MOST_INSTANCES - 1 });
    expect(placeInstance(command, crowded(MOST_INSTANCES - 1))).toMatchObject({ events: [{ event: placed }] });
  });

  test('as many instances on it as a loss can name: refused', () =>
    expect(placeInstance(command, crowded(MOST_INSTANCES))).toEqual({
      refusal: refusal('node_full', { node_id: NODE, lacking: 'places' }),
    }));
});
