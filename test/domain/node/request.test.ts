import { describe, expect, test } from 'vitest';
import { recordCapacityCommand, requestNodeCommand } from '../../../src/commands/node.ts';
import { make, NODE, OTHER_NODE, sample } from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const request = sample.node_provisioning_requested.data;
const capacity = sample.node_capacity_recorded.data;

describe('a node is requested', () => {
  test('unknown id and name: node_provisioning_requested', async () =>
    expect(await given().when(requestNodeCommand, request)).toEqual([sample.node_provisioning_requested]));

  test('repeated: no new event', async () =>
    expect(await given(sample.node_provisioning_requested).when(requestNodeCommand, request)).toEqual([]));

  test.each([{ name: 'another' }, { pool: 'build' }, { region: 'nbg1' }] as const)(
    'same id, other %o: refused',
    async (difference) =>
      expect(
        await given(sample.node_provisioning_requested).when(requestNodeCommand, { ...request, ...difference }),
      ).toEqual(refusal('node_exists', { node_id: NODE })),
  );

  test('a name that another node has: refused', async () =>
    expect(
      await given(make('node_provisioning_requested', { node_id: OTHER_NODE })).when(requestNodeCommand, request),
    ).toEqual(refusal('node_name_taken', { name: request.name })));

  test('in another pool under another name: node_provisioning_requested', async () => {
    const other = make('node_provisioning_requested', { node_id: OTHER_NODE, name: 'build-1', pool: 'build' });
    expect(await given(sample.node_provisioning_requested).when(requestNodeCommand, other.data)).toEqual([other]);
  });
});

describe('capacity is recorded', () => {
  test('unknown before: node_capacity_recorded', async () =>
    expect(await given(sample.node_provisioning_requested).when(recordCapacityCommand, capacity)).toEqual([
      sample.node_capacity_recorded,
    ]));

  test('repeated: no new event', async () =>
    expect(
      await given(sample.node_provisioning_requested, sample.node_capacity_recorded).when(
        recordCapacityCommand,
        capacity,
      ),
    ).toEqual([]));

  test.each([{ cpu_millis: 1 }, { memory_mb: 1 }, { disk_gb: 1 }, { architecture: 'arm' }] as const)(
    'now with %o: node_capacity_recorded',
    async (difference) =>
      expect(
        await given(sample.node_provisioning_requested, sample.node_capacity_recorded).when(recordCapacityCommand, {
          ...capacity,
          ...difference,
        }),
      ).toEqual([make('node_capacity_recorded', difference)]),
  );

  test('unknown node: refused', async () =>
    expect(await given().when(recordCapacityCommand, capacity)).toEqual(refusal('node_unknown', { node: NODE })));
});
