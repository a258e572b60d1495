import { expect, test } from 'vitest';
import { append, type Decision } from '../../src/domain/decision.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import { jobStream, nodeStream } from '../../src/domain/stream.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import { JOB, make, NODE, sample } from './events.ts';
import { given } from './given.ts';

const deciding = (decision: Decision): CommandDefinition<null, undefined> => ({
  name: 'test',
  load: () => Promise.resolve(undefined),
  decide: () => decision,
});

test('a decision for the wrong stream: the test fails', async () => {
  const astray = append(jobStream(JOB), sample.node_admitted);
  await expect(given(sample.node_provisioning_requested).when(deciding(astray), null)).rejects.toThrow(
    `node_admitted was decided for stream job-${JOB}`,
  );
});

test('a decision outside its schema: the test fails', async () => {
  const malformed = append(nodeStream('x'), make('node_admitted', { node_id: 'x' }));
  await expect(given().when(deciding(malformed), null)).rejects.toThrow('node_admitted: × Invalid format');
});

test('a decision that cannot be folded: the test fails', async () => {
  const impossible = append(nodeStream(NODE), sample.node_admitted);
  await expect(given().when(deciding(impossible), null)).rejects.toThrow('fleet_nodes at position 1 (node_admitted)');
});

test('a decision carried out: the next one sees it', async () => {
  const history = given(sample.node_provisioning_requested);
  const admitted: readonly FleetEvent[] = [sample.node_admitted];
  const admitIfNot: CommandDefinition<null, boolean> = {
    name: 'test',
    load: async (rows) => (await rows.get('fleet_nodes', NODE))?.schedulable ?? false,
    decide: (_, schedulable) => (schedulable ? append(nodeStream(NODE)) : append(nodeStream(NODE), ...admitted)),
  };
  expect([await history.when(admitIfNot, null), await history.when(admitIfNot, null)]).toEqual([admitted, []]);
});
