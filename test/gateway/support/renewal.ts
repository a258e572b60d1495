import { createPublicKey, type KeyObject } from 'node:crypto';
import { createCsr } from '../../../agent/csr.ts';
import { append } from '../../../src/domain/decision.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import type { CommandDefinition } from '../../../src/transactor/command.ts';
import { pemOf } from '../../pki/support.ts';
import { type Answered, exchange } from './client.ts';
import { newKey, type TestAgent, type TestFleet } from './fleet.ts';

/** Appends events that no command of the product appends yet, or not without much else. */
export const appendCommand: CommandDefinition<{ stream: string; events: readonly FleetEvent[] }, undefined> = {
  name: 'test_append',
  load: () => Promise.resolve(undefined),
  decide: ({ stream, events }) => append(stream, ...events),
};

/** Makes every certificate of a node as old as if it had been given three days ago, for four: due for renewal. */
export async function makeDue({ database }: TestFleet, nodeId: string): Promise<void> {
  await database.pool.query(
    `UPDATE fleet.fleet_node_certificates SET not_before = not_before - interval '3 days' WHERE node_id = $1`,
    [nodeId],
  );
}

/** An enrolled agent whose certificate is due. */
export async function dueAgent(fleet: TestFleet): Promise<TestAgent> {
  const agent = await fleet.agent();
  await makeDue(fleet, agent.nodeId);
  return agent;
}

/** Asks for a renewal with a key; on a connection of its own unless `agentUrl` or more is given. */
export function renew(fleet: TestFleet, agent: TestAgent, key = newKey(), agentUrl = fleet.gateway.agentUrl) {
  const body = { csr_pem: createCsr(agent.nodeId, key) };
  return exchange(agentUrl, '/v1/agent/certificate/renew', { ...agent, body });
}

/** The agent after a renewal was answered. */
export function renewed(agent: TestAgent, key: KeyObject, answered: Answered): TestAgent {
  if (answered.status !== 200) throw new Error(`the renewal was answered ${answered.status}: ${answered.text}`);
  const { certificate_pem: cert, ca_pem: ca } = answered.body as { certificate_pem: string; ca_pem: string };
  return { ...agent, ca, cert, key: pemOf(key) };
}

/** Renews with a new key. */
export async function renewedAgent(fleet: TestFleet, agent: TestAgent): Promise<TestAgent> {
  const key = newKey();
  return renewed(agent, key, await renew(fleet, agent, key));
}

/** Status and error code of an answer. */
export function told({ status, body }: Answered): readonly [number, string | undefined] {
  return [status, (body as { error?: string }).error];
}

/** What there is in the log of a node, oldest first. */
export async function eventsOf({ database }: TestFleet, nodeId: string): Promise<string[]> {
  const { rows } = await database.pool.query<{ type: string }>(
    'SELECT type FROM fleet.fleet_events WHERE node_id = $1 ORDER BY position',
    [nodeId],
  );
  return rows.map(({ type }) => type);
}

/** DER SubjectPublicKeyInfo of a private key. */
export const spkiOf = (key: KeyObject): Buffer => createPublicKey(key).export({ type: 'spki', format: 'der' });
