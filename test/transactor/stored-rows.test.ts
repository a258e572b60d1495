import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requestNodeCommand } from '../../src/commands/node.ts';
import { jobStream } from '../../src/domain/stream.ts';
import { nodeByName } from '../../src/transactor/finders.ts';
import { RowView } from '../../src/transactor/row-view.ts';
import { StoredRows } from '../../src/transactor/stored-rows.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { JOB, NODE, sample } from '../support/events.ts';
import { execute, nodeRequest, testTransactor } from '../support/fleet.ts';

let database: TestDatabase;
const [first, second] = [nodeRequest(), nodeRequest()];
beforeAll(async () => {
  database = await createTestDatabase();
  const transactor = testTransactor(database.url);
  for (const request of [first, second]) await execute(transactor, requestNodeCommand, request);
  await transactor.close();
});
afterAll(() => database.drop());

/** The test's database, and the names of the statements that were sent to it. */
function observed() {
  const sent: string[] = [];
  const query = (...question: never[]): never => {
    const [statement] = question as readonly { readonly name: string; readonly text: string }[];
    sent.push(statement?.name ?? '');
    return database.pool.query(statement?.text ?? '', (statement as { values?: unknown[] }).values) as never;
  };
  return { rows: new StoredRows({ query }), view: new RowView({ query }), sent };
}

describe('rows that are asked for', () => {
  test('by several in one turn: one statement a table and one a finder, to each its own', async () => {
    const { rows, sent } = observed();
    const keys = [first.node_id, second.node_id, first.node_id, 'nobody'];
    const [found, byName] = await Promise.all([
      Promise.all(keys.map((key) => rows.get('fleet_nodes', key))),
      Promise.all([first, second].map(({ name }) => rows.find(nodeByName, { name }, 1))),
    ]);
    expect(found.map((row) => row && 'name' in row && row.name)).toEqual([
      first.name,
      second.name,
      first.name,
      undefined,
    ]);
    expect(byName.map(({ rows: [row] }) => row)).toEqual([found[0], found[1]]);
    expect(sent).toEqual(['get_fleet_nodes', 'find_node_by_name']);
  });

  test('again in a later turn: not read again', async () => {
    const { rows, sent } = observed();
    const before = await rows.get('fleet_nodes', first.node_id);
    expect(await rows.get('fleet_nodes', first.node_id)).toBe(before);
    expect(sent).toEqual(['get_fleet_nodes']);
  });

  test('by their key after a search has found them: not read again', async () => {
    const { rows, sent } = observed();
    const found = await rows.find(nodeByName, { name: first.name }, 1);
    expect(await rows.get('fleet_nodes', first.node_id)).toBe(found.rows[0]);
    expect(sent).toEqual(['find_node_by_name']);
  });

  test('a statement fails: all who asked hear it', async () => {
    const { rows } = observed();
    const asked = [rows.get('fleet_nodes', 'nul \0 byte'), rows.get('fleet_nodes', first.node_id)];
    const settled = await Promise.allSettled(asked);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});

test('events whose rows do not depend on what was there: folded without reading them', async () => {
  const { view, sent } = observed();
  const actor = { kind: 'gateway' as const, id: 'x', database_user: 'x', client_address: null };
  const metadata = { actor, command_id: 'x', correlation_id: 'x', program_version: 'x', epoch: 1 };
  for (const [i, event] of [sample.job_queued, sample.job_leased].entries()) {
    await view.fold({ position: i + 1, stream: jobStream(JOB), at: i, metadata, ...event });
  }
  expect(await view.get('job_leases', JOB)).toMatchObject({ node_id: NODE });
  // The jobs row has to be looked for; the guard and the lines of fleet_events are made by their events alone.
  expect(sent.filter((name) => name !== 'get_job_payloads')).toEqual(['get_jobs']);
});
