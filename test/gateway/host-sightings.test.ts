import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { AgentClient, leaseRequest } from './support/client.ts';
import { startFleet, type TestAgent, type TestFleet } from './support/fleet.ts';

let fleet: TestFleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet[Symbol.asyncDispose]());

const [FIRST, SECOND] = [randomUUID(), randomUUID()];

/** Two hosts with the certificate of one node, told apart by address and boot id. */
function hostsOf(agent: TestAgent) {
  const original = new AgentClient(fleet.gateway.agentUrl, { ...agent, localAddress: '127.0.0.1' });
  const copy = new AgentClient(fleet.gateway.agentUrl, { ...agent, localAddress: '127.0.0.2' });
  return { original, copy };
}

async function eventsOf(nodeId: string, type: string): Promise<unknown[]> {
  const { rows } = await fleet.database.pool.query<{ data: unknown }>(
    'SELECT data FROM fleet.fleet_events WHERE node_id = $1 AND type = $2 ORDER BY position',
    [nodeId, type],
  );
  return rows.map(({ data }) => data);
}

const hostOf = async (nodeId: string, bootId: string) =>
  (
    await fleet.database.pool.query('SELECT 1 FROM telemetry.node_hosts WHERE node_id = $1 AND boot_id = $2', [
      nodeId,
      bootId,
    ])
  ).rowCount === 1;

/** As if what is written had been seen a minute ago. */
const aMinuteLater = (nodeId: string) =>
  fleet.database.pool.query(
    `UPDATE telemetry.node_hosts SET first_seen_at = first_seen_at - interval '1 minute',
     last_seen_at = last_seen_at - interval '1 minute' WHERE node_id = $1`,
    [nodeId],
  );

async function seen(client: AgentClient, nodeId: string, bootId: string): Promise<void> {
  expect((await client.lease({ boot_id: bootId })).status).toBe(200);
  await waitFor(() => hostOf(nodeId, bootId), { what: `${bootId} is written` });
  await aMinuteLater(nodeId);
}

describe('hosts of a node', () => {
  test('a host that reboots: no conflict', async () => {
    const agent = await fleet.agent();
    using host = hostsOf(agent).original;
    await seen(host, agent.nodeId, FIRST);
    await seen(host, agent.nodeId, SECOND);
    expect(await eventsOf(agent.nodeId, 'certificate_conflict_seen')).toEqual([]);
  });

  test('two hosts in turn: one certificate_conflict_seen with both, and the node stays as it is', async () => {
    const agent = await fleet.agent();
    const { original, copy } = hostsOf(agent);
    using _original = original;
    using _copy = copy;
    await seen(original, agent.nodeId, FIRST);
    await seen(copy, agent.nodeId, SECOND);
    expect((await original.lease({ boot_id: FIRST })).status).toBe(200);
    await waitFor(async () => (await eventsOf(agent.nodeId, 'certificate_conflict_seen')).length > 0, {
      what: 'the conflict is recorded',
    });
    const { capabilities } = leaseRequest();
    for (const [client, boot_id, cpu_count] of [
      [copy, SECOND, 8],
      [original, FIRST, 4],
      [copy, SECOND, 8],
    ] as const) {
      const request = { boot_id, capabilities: { ...capabilities, host: { ...capabilities.host, cpu_count } } };
      expect((await client.lease(request)).status).toBe(200);
    }
    expect(await eventsOf(agent.nodeId, 'certificate_conflict_seen')).toEqual([
      {
        node_id: agent.nodeId,
        certificate_id: expect.stringMatching(/^[0-9a-f]+$/),
        boot_ids: [FIRST, SECOND],
        addresses: ['127.0.0.1', '127.0.0.2'],
      },
    ]);
    expect(await eventsOf(agent.nodeId, 'node_host_facts_changed')).toHaveLength(1);
  });
});
