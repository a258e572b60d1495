import { expect, test } from 'vitest';
import { failProvisioningCommand } from '../../../src/commands/node.ts';
import { enrolled, make, NODE, provisioned, sample } from '../../support/events.ts';
import { given } from '../../support/given.ts';

const vanished = { node_id: NODE, reason: 'server_vanished' } as const;

test('the server is gone, the secret still good: node_provisioning_failed with that reason', async () =>
  expect(await given(...provisioned).when(failProvisioningCommand, vanished)).toEqual([
    make('node_provisioning_failed', { reason: 'server_vanished' }),
  ]));

test('an enrolled node: refused, whatever became of its server', async () =>
  expect(await given(...enrolled).when(failProvisioningCommand, vanished)).toMatchObject({
    code: 'node_not_provisioning',
  }));

test('a server came up and no secret was ever armed: failed, since nobody can enrol', async () => {
  const { node_provisioning_requested, node_server_adopted, node_server_running } = sample;
  const history = given(node_provisioning_requested, node_server_adopted, node_server_running);
  expect(await history.when(failProvisioningCommand, { node_id: NODE })).toEqual([sample.node_provisioning_failed]);
});
