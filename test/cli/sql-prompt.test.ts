import { PassThrough } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sqlPrompt } from '../../cli/sql/prompt.ts';
import { openSqlSession, type SqlSession } from '../../cli/sql/session.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { waitFor } from '../support/wait-for.ts';

let database: TestDatabase;
let session: SqlSession;

beforeAll(async () => {
  database = await createTestDatabase();
  session = await openSqlSession(database.url, 'test', false);
});

afterAll(async () => {
  await session.close();
  await database.drop();
});

/** What the prompt writes when these lines are typed, each at a prompt of its own. */
async function typed(...lines: string[]): Promise<string[]> {
  const [input, output] = [new PassThrough(), new PassThrough()];
  let written = '';
  let seen = 0;
  output.on('data', (chunk: Buffer) => (written += chunk.toString()));
  const prompted = () => waitFor(() => written.length > seen && /fleet[=-]> $/.test(written), { what: 'a prompt' });
  const ended = sqlPrompt(session, { input, output, terminal: false });
  for (const line of lines) {
    await prompted();
    seen = written.length;
    input.write(`${line}\n`);
  }
  if (!lines.includes('\\q')) await prompted();
  input.end();
  await ended;
  return written.split('\n').map((line) => line.trimEnd());
}

describe('the SQL prompt', () => {
  test('the end of input while a statement runs: its answer, then the end', async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    let written = '';
    output.on('data', (chunk: Buffer) => (written += chunk.toString()));
    input.end('SELECT 3 AS three FROM pg_sleep(0.1);\n');
    await sqlPrompt(session, { input, output, terminal: false });
    expect(written).toBe('fleet=> three\n3\n(1 row)\n');
  });

  test('a statement over two lines: the prompt shows that it goes on, then the answer', async () => {
    expect(await typed('SELECT 1', 'AS one;', '\\q')).toEqual(['fleet=> fleet-> one', '1', '(1 row)', 'fleet=>']);
  });

  test('an error of SQL: is shown, and the prompt goes on', async () => {
    expect(await typed('SELECT nothing;', 'SELECT 2 AS two;')).toEqual([
      'fleet=> ERROR 42703: column "nothing" does not exist',
      'fleet=> two',
      '2',
      '(1 row)',
      'fleet=>',
    ]);
  });

  test('\\d: lists the tables; \\d TABLE: its columns', async () => {
    const tables = await typed('\\d');
    const columns = await typed('\\d fleet.pool_firewalls');
    expect(tables.filter((line) => line.startsWith('log'))).toEqual(['log        append_grants', 'log        events']);
    expect(columns.slice(1, 5)).toEqual([
      'pool          text                      not null',
      'firewall_id   bigint                    not null',
      'rules_sha256  text                      not null',
      'converged_at  timestamp with time zone  not null',
    ]);
  });

  test('something to change: refused, because the session only reads', async () => {
    expect(await typed('DELETE FROM telemetry.commands;')).toEqual([
      'fleet=> ERROR: only statements that read are taken; see --write',
      'fleet=>',
    ]);
  });
});

describe('a session that only reads', () => {
  test.each([
    ['COMMIT', 'only statements that read'],
    ['BEGIN READ WRITE', 'only statements that read'],
    ['SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE', 'only statements that read'],
    ['/* select */ DELETE FROM telemetry.bodies', 'only statements that read'],
    ['WITH gone AS (DELETE FROM telemetry.bodies RETURNING 1) SELECT * FROM gone', 'read-only transaction'],
    ['EXPLAIN ANALYZE DELETE FROM telemetry.bodies', 'read-only transaction'],
    ["SELECT set_config('transaction_read_only', 'off', false)", 'read-write mode must be set before any query'],
    ['SELECT 1; DELETE FROM telemetry.bodies', 'cannot insert multiple commands'],
  ])('%s: refused', async (statement, reason) => {
    await expect(session.run(statement)).rejects.toThrow(reason);
  });

  test.each(['-- a comment\nSELECT 1', '(SELECT 1)', 'TABLE telemetry.bodies', 'SHOW server_version'])(
    '%s: answered',
    async (statement) =>
      expect((await session.run(statement)).columns).toHaveLength(statement.startsWith('TABLE') ? 4 : 1),
  );
});
