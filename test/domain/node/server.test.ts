import { describe, expect, test } from 'vitest';
import {
  recordServerCommand,
  recordServerDeletedCommand,
  recordServerRunningCommand,
  retryProvisioningCommand,
} from '../../../src/commands/node.ts';
import { enrolled, make, NODE, provisioned, sample } from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const requested = [sample.node_provisioning_requested, sample.node_enrollment_secret_armed] as const;
const running = sample.node_server_running.data;

describe('the server exists', () => {
  const created = { node_id: NODE, server_id: 4711, adopted: false };

  test('created: node_server_requested', async () =>
    expect(await given(...requested).when(recordServerCommand, created)).toEqual([sample.node_server_requested]));

  test('found by its label: node_server_adopted', async () =>
    expect(await given(...requested).when(recordServerCommand, { ...created, server_id: 4712, adopted: true })).toEqual(
      [sample.node_server_adopted],
    ));

  test('repeated: no new event', async () =>
    expect(await given(...requested, sample.node_server_requested).when(recordServerCommand, created)).toEqual([]));

  test('created, then found by its label: no new event', async () =>
    expect(
      await given(...requested, sample.node_server_requested).when(recordServerCommand, { ...created, adopted: true }),
    ).toEqual([]));

  test('another one than before: node_server_adopted', async () =>
    expect(
      await given(...provisioned).when(recordServerCommand, { node_id: NODE, server_id: 4712, adopted: true }),
    ).toEqual([sample.node_server_adopted]));

  test('unknown node: refused', async () =>
    expect(await given().when(recordServerCommand, created)).toEqual(refusal('node_unknown', { node: NODE })));
});

describe('the server runs', () => {
  test('requested: node_server_running', async () =>
    expect(await given(...requested, sample.node_server_requested).when(recordServerRunningCommand, running)).toEqual([
      sample.node_server_running,
    ]));

  test('repeated: no new event', async () =>
    expect(await given(...provisioned).when(recordServerRunningCommand, running)).toEqual([]));

  test('its agent enrolled before anybody recorded the server: node_server_running', async () =>
    expect(
      await given(
        ...requested,
        sample.certificate_authorized,
        sample.certificate_issued,
        sample.node_enrolled,
        sample.node_server_adopted,
      ).when(recordServerRunningCommand, { ...running, server_id: 4712 }),
    ).toEqual([make('node_server_running', { server_id: 4712 })]));

  test.each([{ server_id: 4712 }, { public_ipv4: '203.0.113.8' }, { location: 'nbg1' }])(
    'now with %o: node_server_running',
    async (difference) =>
      expect(await given(...enrolled).when(recordServerRunningCommand, { ...running, ...difference })).toEqual([
        make('node_server_running', difference),
      ]),
  );

  test('unknown node: refused', async () =>
    expect(await given().when(recordServerRunningCommand, running)).toEqual(refusal('node_unknown', { node: NODE })));
});

describe('the server is gone', () => {
  test('had one: node_server_deleted names it', async () =>
    expect(await given(...provisioned).when(recordServerDeletedCommand, { node_id: NODE })).toEqual([
      sample.node_server_deleted,
    ]));

  test('repeated: no new event', async () =>
    expect(
      await given(...provisioned, sample.node_server_deleted).when(recordServerDeletedCommand, { node_id: NODE }),
    ).toEqual([]));

  test('never had one: no new event', async () =>
    expect(await given(...requested).when(recordServerDeletedCommand, { node_id: NODE })).toEqual([]));

  test('unknown node: refused', async () =>
    expect(await given().when(recordServerDeletedCommand, { node_id: NODE })).toEqual(
      refusal('node_unknown', { node: NODE }),
    ));
});

describe('a failed node', () => {
  const failed = [...provisioned, sample.node_provisioning_failed] as const;
  const retry = { node_id: NODE };

  test('its server is found late: recorded, and only a retry brings the node back', async () => {
    const history = given(...failed);
    expect(await history.when(recordServerCommand, { node_id: NODE, server_id: 4712, adopted: true })).toEqual([
      sample.node_server_adopted,
    ]);
    expect(await history.when(retryProvisioningCommand, retry)).toEqual([sample.node_provisioning_retried]);
  });

  test('its server is seen running late: recorded, and only a retry brings the node back', async () => {
    const history = given(...failed);
    const moved = { ...running, public_ipv4: '203.0.113.8' };
    expect(await history.when(recordServerRunningCommand, moved)).toEqual([
      make('node_server_running', { public_ipv4: '203.0.113.8' }),
    ]);
    expect(await history.when(retryProvisioningCommand, retry)).toEqual([sample.node_provisioning_retried]);
  });
});
