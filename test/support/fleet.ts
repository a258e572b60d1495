import { randomUUID } from 'node:crypto';
import { requestNodeCommand } from '../../src/commands/node.ts';
import type { EventData } from '../../src/domain/event/catalogue.ts';
import type { CommandActor, CommandDefinition, CommandOutcome } from '../../src/transactor/command.ts';
import { Transactor, type TransactorOptions } from '../../src/transactor/transactor.ts';

/** The operator of most tests. */
export const OPERATOR: CommandActor = { kind: 'operator', id: 'tester@test' };

/** A transactor on a test database. */
export function testTransactor(url: string, options: Partial<TransactorOptions> = {}): Transactor {
  return new Transactor({ url, program: 'test', programVersion: '0.0.0-test', ...options });
}

/** Gives a command as the test's operator. */
export function execute<C, S>(
  transactor: Transactor,
  definition: CommandDefinition<C, S>,
  command: C,
): Promise<CommandOutcome> {
  return transactor.execute(definition, command, { actor: OPERATOR });
}

/** A request for a new node; fields can be set. */
export function nodeRequest(
  fields: Partial<EventData<'node_provisioning_requested'>> = {},
): EventData<'node_provisioning_requested'> {
  const nodeId = fields.node_id ?? randomUUID();
  return {
    node_id: nodeId,
    name: `app-fsn1-${nodeId.slice(0, 8)}`,
    pool: 'application',
    provider: 'hetzner',
    region: 'fsn1',
    server_type: 'cx33',
    image: 'ubuntu-24.04',
    placement_group: null,
    ...fields,
  };
}

/** Requests nodes until there are `count` events in the log; returns their ids. */
export async function requestNodes(transactor: Transactor, count: number): Promise<string[]> {
  const requests = Array.from({ length: count }, () => nodeRequest());
  const outcomes = await Promise.all(requests.map((request) => execute(transactor, requestNodeCommand, request)));
  const refused = outcomes.find((outcome) => !outcome.ok);
  if (refused !== undefined) throw new Error(`a node was refused: ${JSON.stringify(refused)}`);
  return requests.map((request) => request.node_id);
}
