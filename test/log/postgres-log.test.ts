import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { requestNodeCommand } from '../../src/commands/node.ts';
import { createPool, READER_LIMITS } from '../../src/database/connect.ts';
import { chainHash } from '../../src/log/chain.ts';
import { postgresEventLog } from '../../src/log/postgres/postgres-event-log.ts';
import { readRows } from '../../src/log/postgres/reader.ts';
import { verifyLog } from '../../src/log/postgres/verify-log.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { execute, nodeRequest, requestNodes, testTransactor } from '../support/fleet.ts';

const EVENTS = 12;
let database: TestDatabase;
let transactor: Transactor;

beforeAll(async () => {
  database = await createTestDatabase();
  transactor = testTransactor(database.url);
  await requestNodes(transactor, EVENTS);
});

afterAll(async () => {
  await transactor.close();
  await database.drop();
});

/** Changes the log as an intruder with the superuser's rights could, checks, and puts everything back. */
async function tampered(statements: readonly string[], check: () => Promise<void>): Promise<void> {
  await database.pool.query('CREATE TABLE public.kept AS TABLE log.events');
  await database.pool.query('ALTER TABLE log.events DISABLE TRIGGER ALL');
  try {
    for (const statement of statements) await database.pool.query(statement);
    await check();
  } finally {
    await database.pool.query('DELETE FROM log.events');
    await database.pool.query('INSERT INTO log.events TABLE public.kept');
    await database.pool.query('ALTER TABLE log.events ENABLE TRIGGER ALL');
    await database.pool.query('DROP TABLE public.kept');
  }
}

describe('log verify', () => {
  test('untouched: proved to its end', async () => {
    const head = await postgresEventLog(database.pool).head();
    expect(await verifyLog(database.pool)).toEqual({ position: EVENTS, hash: head.hash, fault: undefined });
  });

  test('an edited event: named', () =>
    tampered([`UPDATE log.events SET body = replace(body, 'fsn1', 'nbg1') WHERE position = 5`], async () => {
      expect((await verifyLog(database.pool)).fault).toEqual({ position: 5, reason: 'hash_mismatch' });
    }));

  test('an edited event whose own hash was made to fit: the one after it no longer follows', () =>
    tampered(
      [
        `UPDATE log.events SET body = replace(body, 'fsn1', 'nbg1') WHERE position = 5`,
        `UPDATE log.events e SET hash = sha256((SELECT hash FROM log.events WHERE position = 4) || convert_to(e.body, 'UTF8')) WHERE position = 5`,
      ],
      async () => expect((await verifyLog(database.pool)).fault).toEqual({ position: 6, reason: 'hash_mismatch' }),
    ));

  test('a removed event: named', () =>
    tampered(['DELETE FROM log.events WHERE position = 7'], async () => {
      expect((await verifyLog(database.pool)).fault).toEqual({ position: 7, reason: 'missing' });
    }));

  test('two swapped events: the first of them is named', () =>
    tampered(
      [
        'UPDATE log.events SET position = -3 WHERE position = 3',
        'UPDATE log.events SET position = 3 WHERE position = 4',
        'UPDATE log.events SET position = 4 WHERE position = -3',
      ],
      async () => expect((await verifyLog(database.pool)).fault).toEqual({ position: 3, reason: 'hash_mismatch' }),
    ));

  test('an end that was cut off: shown by what was folded from it', () =>
    tampered([`DELETE FROM log.events WHERE position > 10`], async () => {
      expect((await verifyLog(database.pool)).fault).toEqual({ position: 11, reason: 'cut_short' });
    }));

  describe('an event that a newer program appended', () => {
    const append = `
      INSERT INTO log.events
      SELECT position + 1, stream, 2, 'node_sold', at, sha256(hash || convert_to(sold, 'UTF8')), sold
      FROM log.events, replace(body, '"type":"node_provisioning_requested"', '"type":"node_sold"') AS sold
      ORDER BY position DESC LIMIT 1`;

    test('its hash holds: proved like the others, and said to be newer', () =>
      tampered([append], async () => {
        const { hash } = await postgresEventLog(database.pool).head();
        expect(await verifyLog(database.pool)).toEqual({
          position: EVENTS + 1,
          hash,
          fault: { position: EVENTS + 1, reason: 'newer_program' },
        });
      }));

    test.each([
      ['it was edited', `UPDATE log.events SET body = replace(body, 'fsn1', 'nbg1') WHERE position = ${EVENTS + 1}`],
      ['its hash was', `UPDATE log.events SET hash = sha256(hash) WHERE position = ${EVENTS + 1}`],
    ])('%s: tampering', (_, edit) =>
      tampered([append, edit], async () =>
        expect((await verifyLog(database.pool)).fault).toEqual({ position: EVENTS + 1, reason: 'hash_mismatch' }),
      ),
    );

    test('a column says something else than its bytes: tampering', () =>
      tampered([append, `UPDATE log.events SET type = 'node_given' WHERE position = ${EVENTS + 1}`], async () =>
        expect((await verifyLog(database.pool)).fault).toEqual({ position: EVENTS + 1, reason: 'column_mismatch' }),
      ));

    test('a later one has a revision too many: that is named', () =>
      tampered([append, append.replace('stream, 2', 'stream, 4')], async () =>
        expect((await verifyLog(database.pool)).fault).toEqual({ position: EVENTS + 2, reason: 'revision_mismatch' }),
      ));
  });

  test.each([`type = 'node_admitted'`, `stream = 'node-x'`, `at = at - 1`])(
    'a column (%s) that says something else than the bytes: named',
    (change) =>
      tampered([`UPDATE log.events SET ${change} WHERE position = 9`], async () => {
        expect((await verifyLog(database.pool)).fault).toEqual({ position: 9, reason: 'column_mismatch' });
      }),
  );
});

describe('the tables', () => {
  test.each([
    `UPDATE log.events SET at = 0`,
    `DELETE FROM log.events`,
    `TRUNCATE log.events`,
    `DELETE FROM log.events WHERE position = 1`,
  ])('%s: refused even for the superuser', async (statement) => {
    await expect(database.pool.query(statement)).rejects.toThrow('append-only');
  });
});

describe('log.append', () => {
  const append = (body: string, { expected = EVENTS, hash = '' } = {}) =>
    database.pool.query('SELECT log.append($1, $2, $3)', [expected, [body], [Buffer.from(hash, 'hex')]]);

  test('another position than the end: refused', async () => {
    await expect(append('{}', { expected: EVENTS - 1 })).rejects.toMatchObject({ code: 'PF001' });
  });

  test('a hash that does not follow: refused', async () => {
    const [row] = await readRows(database.pool, { after: 0, limit: 1 });
    await expect(append(row?.body ?? '', { hash: row?.hash ?? '' })).rejects.toMatchObject({ code: 'PF002' });
  });

  test('an event that names another database user: refused', async () => {
    const [last] = await readRows(database.pool, { after: EVENTS - 1, limit: 1 });
    const body = last?.body.replace(/"database_user":"[^"]*"/, '"database_user":"somebody"') ?? '';
    await expect(append(body, { hash: chainHash(last?.hash ?? '', body) })).rejects.toMatchObject({ code: 'PF002' });
  });

  test('a role without the event type: refused', async () => {
    const user = `gateway_${process.pid}`;
    await database.pool.query(`CREATE ROLE ${user} LOGIN PASSWORD 'x' IN ROLE pushleft_gateway`);
    try {
      const gateway = testTransactor(database.url.replace(/\/\/[^@]*@/, `//${user}:x@`));
      await expect(execute(gateway, requestNodeCommand, nodeRequest())).rejects.toMatchObject({ code: 'PF002' });
      await gateway.close();
    } finally {
      await database.pool.query(`DROP ROLE ${user}`);
    }
  });
});

describe('follow', () => {
  test('from any position: exactly what comes after it, then what is appended later', async () => {
    const log = postgresEventLog(database.pool);
    const stop = new AbortController();
    const seen: number[] = [];
    const following = (async () => {
      for await (const events of log.follow({ after: 4, signal: stop.signal })) {
        seen.push(...events.map((event) => event.position));
        if (seen.length === EVENTS - 4) await execute(transactor, requestNodeCommand, nodeRequest());
        if (seen.length > EVENTS - 4) stop.abort();
      }
    })();
    await following;
    expect(seen).toEqual(Array.from({ length: EVENTS - 4 + 1 }, (_, i) => 5 + i));
  });

  test('its connection is cut: goes on where it was', async () => {
    const program = `cut-${process.pid}`;
    const pool = createPool({ url: database.url, program, limits: READER_LIMITS, max: 1 });
    const { position } = await postgresEventLog(database.pool).head();
    const stop = new AbortController();
    const seen: number[] = [];
    const follower = postgresEventLog(pool).follow({ after: position - 1, signal: stop.signal });
    for await (const events of follower) {
      seen.push(...events.map((event) => event.position));
      if (seen.length === 1) {
        await database.pool.query(
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE $1`,
          [`pushleft ${program}%`],
        );
        await requestNodes(transactor, 2);
      }
      if (seen.length === 3) stop.abort();
    }
    expect(seen).toEqual([position, position + 1, position + 2]);
    await pool.end();
  });
});

test('read by stream: that entity alone, by revision', async () => {
  const request = nodeRequest();
  await execute(transactor, requestNodeCommand, request);
  const events = await postgresEventLog(database.pool).readStream(`node-${request.node_id}`, { after: 0, limit: 10 });
  expect(events.map(({ revision, event }) => ({ revision, type: event.type, data: event.data }))).toEqual([
    { revision: 1, type: 'node_provisioning_requested', data: request },
  ]);
});
