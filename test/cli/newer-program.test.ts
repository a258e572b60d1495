import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { requestNodes, testTransactor } from '../support/fleet.ts';
import { runCli } from './support/run-cli.ts';

// Each test starts processes, which wait for their turn on a busy machine.
vi.setConfig({ testTimeout: 180_000 });

let database: TestDatabase;
const cli = (...args: string[]) => runCli(args, { env: { DATABASE_URL: database.url } });

/** A log whose second event has a type that this program does not know. */
beforeAll(async () => {
  database = await createTestDatabase();
  const transactor = testTransactor(database.url);
  await requestNodes(transactor, 1);
  await transactor.close();
  await database.pool.query(`
    INSERT INTO log.events
    SELECT 2, stream, 2, 'node_sold', at, sha256(hash || convert_to(sold, 'UTF8')), sold
    FROM log.events, replace(body, '"type":"node_provisioning_requested"', '"type":"node_sold"') AS sold`);
});

afterAll(() => database.drop());

test('log verify: exit 2, says what to use, speaks of no tampering', async () => {
  const { code, stdout, stderr } = await cli('log', 'verify');
  expect({ code, stderr }).toEqual({ code: 2, stderr: '' });
  expect(stdout).toMatch(
    /^position 2: written by a newer program; use the newer program\n2 events are as they were written; hash at position 2: [0-9a-f]{64}\n$/,
  );
});

test('log verify --json: the fault as a code', async () => {
  const { code, stdout } = await cli('log', 'verify', '--json');
  expect({ code, fault: JSON.parse(stdout).fault }).toEqual({
    code: 2,
    fault: { position: 2, reason: 'newer_program' },
  });
});

test.each([[['log', 'show', '2']], [['fleet', 'list', '--at', '2']], [['projections', 'verify']]])(
  '%s: exit 2, says what to use',
  async (args) => {
    expect(await cli(...args)).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'pushleft-controller: a newer program wrote to the log: position 2: unknown event type node_sold\n' +
        '  use the newer program\n',
    });
  },
);
