import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { beginRotationCommand, initializeCaCommand } from '../../src/commands/ca.ts';
import { requestNodeCommand } from '../../src/commands/node.ts';
import { DECISION_LOCK } from '../../src/database/locks.ts';
import { append, nothing, refuse } from '../../src/domain/decision.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { sample } from '../support/events.ts';
import { execute, nodeRequest, OPERATOR, testTransactor } from '../support/fleet.ts';
import { waitFor } from '../support/wait-for.ts';

let database: TestDatabase;
let transactor: Transactor;

beforeAll(async () => {
  database = await createTestDatabase();
  transactor = testTransactor(database.url);
});

afterAll(async () => {
  await transactor.close();
  await database.drop();
});

/** Positions and types of all events, as they lie in the log. */
async function logTypes(): Promise<string[]> {
  const { rows } = await database.pool.query<{ type: string }>('SELECT type FROM log.events ORDER BY position');
  return rows.map((row) => row.type);
}

/** Holds the decision lock from another session until `release`. */
async function holdLock() {
  const client = await database.pool.connect();
  await client.query('BEGIN');
  await client.query(`SELECT pg_advisory_xact_lock(${DECISION_LOCK})`);
  return {
    async release() {
      await client.query('COMMIT');
    },
    [Symbol.asyncDispose]() {
      client.release(true);
      return Promise.resolve();
    },
  };
}

/** A command whose load or decide is the test's own. */
function custom(parts: Partial<CommandDefinition<null, unknown>>): CommandDefinition<null, unknown> {
  return { name: 'test', load: () => Promise.resolve(undefined), decide: () => nothing(), ...parts };
}

describe('a command', () => {
  test('accepted: events in the log, rows in the tables, positions to the caller', async () => {
    const request = nodeRequest();
    const before = (await logTypes()).length;
    expect(await execute(transactor, requestNodeCommand, request)).toEqual({
      ok: true,
      events: [{ position: before + 1, type: 'node_provisioning_requested' }],
      reply: {},
    });
    const { rows } = await database.pool.query(
      'SELECT name, provision_state FROM fleet.fleet_nodes WHERE node_id = $1',
      [request.node_id],
    );
    expect(rows).toEqual([{ name: request.name, provision_state: 'pending' }]);
  });

  test('repeated: no new event', async () => {
    const request = nodeRequest();
    await execute(transactor, requestNodeCommand, request);
    const before = await logTypes();
    expect(await execute(transactor, requestNodeCommand, request)).toEqual({ ok: true, events: [], reply: {} });
    expect(await logTypes()).toEqual(before);
  });

  test('refused: code and details, nothing appended', async () => {
    const first = nodeRequest();
    await execute(transactor, requestNodeCommand, first);
    const before = await logTypes();
    expect(await execute(transactor, requestNodeCommand, nodeRequest({ name: first.name }))).toEqual({
      ok: false,
      refusal: { code: 'node_name_taken', details: { name: first.name } },
    });
    expect(await logTypes()).toEqual(before);
  });

  test('same command id again: the remembered outcome, not a second decision', async () => {
    const options = { actor: OPERATOR, commandId: randomUUID() };
    const first = await transactor.execute(requestNodeCommand, nodeRequest(), options);
    const other = await transactor.execute(requestNodeCommand, nodeRequest(), options);
    expect(other).toEqual(first);
  });

  test('same command id twice in one batch: decided once', async () => {
    await using lock = await holdLock();
    const options = { actor: OPERATOR, commandId: randomUUID() };
    const gathering = execute(transactor, requestNodeCommand, nodeRequest());
    const both = [nodeRequest(), nodeRequest()].map((r) => transactor.execute(requestNodeCommand, r, options));
    await lock.release();
    await gathering;
    const [first, second] = await Promise.all(both);
    expect(second).toEqual(first);
  });
});

describe('a batch', () => {
  test('each command sees what those before it decided', async () => {
    await using lock = await holdLock();
    const name = `twin-${randomUUID().slice(0, 8)}`;
    const gathering = execute(transactor, requestNodeCommand, nodeRequest());
    const twins = [nodeRequest({ name }), nodeRequest({ name })].map((r) => execute(transactor, requestNodeCommand, r));
    await lock.release();
    await gathering;
    expect((await Promise.all(twins)).map((outcome) => outcome.ok)).toEqual([true, false]);
  });

  test('one of its commands is refused on record: the event is in the log and the tables, the others take place', async () => {
    const { data } = sample.ca_initialized;
    expect(await execute(transactor, initializeCaCommand, data)).toMatchObject({ ok: true });
    await using lock = await holdLock();
    const begin = { ...sample.ca_rotation_begun.data, previous_ca_sha256: sample.ca_rotation_begun.data.ca_sha256 };
    const options = { actor: OPERATOR, commandId: randomUUID() };
    const gathering = execute(transactor, requestNodeCommand, nodeRequest());
    const refused = [0, 1].map(() => transactor.execute(beginRotationCommand, begin, options));
    const after = execute(transactor, requestNodeCommand, nodeRequest());
    const before = (await logTypes()).length;
    await lock.release();
    await gathering;
    const [first, second] = await Promise.all(refused);
    expect(first).toMatchObject({
      ok: false,
      refusal: { code: 'ca_files_differ' },
      events: [{ position: before + 2, type: 'ca_rotation_refused' }],
    });
    expect(second).toEqual(first);
    expect(await after).toMatchObject({ ok: true, events: [{ position: before + 3 }] });
    expect((await logTypes()).slice(before)).toEqual([
      'node_provisioning_requested',
      'ca_rotation_refused',
      'node_provisioning_requested',
    ]);
    const { rows } = await database.pool.query(
      "SELECT type FROM fleet.fleet_events WHERE stream = 'ca-fleet' ORDER BY position",
    );
    expect(rows).toEqual([{ type: 'ca_initialized' }, { type: 'ca_rotation_refused' }]);
    // A retry after the answer was lost, in a batch of its own: remembered.
    expect(await transactor.execute(beginRotationCommand, begin, options)).toEqual(first);
    expect(await logTypes()).toHaveLength(before + 3);
  });

  test('one of its commands throws: only that one fails', async () => {
    await using lock = await holdLock();
    const gathering = execute(transactor, requestNodeCommand, nodeRequest());
    const thrown = execute(
      transactor,
      custom({
        decide: () => {
          throw new Error('defect');
        },
      }),
      null,
    );
    const fine = execute(transactor, requestNodeCommand, nodeRequest());
    const rejected = expect(thrown).rejects.toThrow('defect');
    await lock.release();
    await gathering;
    await rejected;
    expect((await fine).ok).toBe(true);
  });

  test('a command throws while its events are folded: its rows are taken back', async () => {
    const ghost = randomUUID();
    const request = nodeRequest();
    await using lock = await holdLock();
    const gathering = execute(transactor, requestNodeCommand, nodeRequest());
    const impossible = execute(
      transactor,
      custom({
        decide: () =>
          append(
            nodeStream(request.node_id),
            { type: 'node_provisioning_requested', data: request },
            { type: 'node_admitted', data: { node_id: ghost } },
          ),
      }),
      null,
    );
    const rejected = expect(impossible).rejects.toThrow('fleet_nodes at position');
    const same = execute(transactor, requestNodeCommand, request);
    await lock.release();
    await gathering;
    await rejected;
    expect(await same).toMatchObject({ ok: true, events: [{ type: 'node_provisioning_requested' }] });
  });

  test('the database refuses one of its commands: only that one fails', async () => {
    await using lock = await holdLock();
    const gathering = execute(transactor, requestNodeCommand, nodeRequest());
    const poisoned = execute(transactor, custom({ load: (rows) => rows.get('fleet_nodes', 'nul \0 byte') }), null);
    const rejected = expect(poisoned).rejects.toThrow(/invalid byte sequence/);
    const others = [nodeRequest(), nodeRequest()].map((r) => execute(transactor, requestNodeCommand, r));
    await lock.release();
    await gathering;
    await rejected;
    expect((await Promise.all(others)).map((outcome) => outcome.ok)).toEqual([true, true]);
  });

  test('a long refusal in the middle: those around it are appended without a gap', async () => {
    const before = (await logTypes()).length;
    await using lock = await holdLock();
    const gathering = execute(transactor, requestNodeCommand, nodeRequest());
    const outcomes = [
      execute(transactor, requestNodeCommand, nodeRequest()),
      execute(transactor, custom({ decide: () => refuse('capacity_unknown') }), null),
      execute(transactor, requestNodeCommand, nodeRequest()),
    ];
    await lock.release();
    await gathering;
    const positions = (await Promise.all(outcomes)).flatMap((o) => (o.ok ? o.events.map((e) => e.position) : []));
    expect(positions).toEqual([before + 2, before + 3]);
  });
});

describe('the lock', () => {
  test('waited for: what was committed meanwhile is seen', async () => {
    const name = `late-${randomUUID().slice(0, 8)}`;
    const other = testTransactor(database.url);
    await using lock = await holdLock();
    const waiting = [transactor, other].map((t) => execute(t, requestNodeCommand, nodeRequest({ name })));
    await waitFor(
      async () => {
        const { rows } = await database.pool.query<{ waiting: number }>(
          `SELECT count(*) AS waiting FROM pg_locks WHERE locktype = 'advisory' AND NOT granted`,
        );
        return rows[0]?.waiting === 2;
      },
      { what: 'both transactors wait for the lock' },
    );
    await lock.release();
    expect((await Promise.all(waiting)).filter((outcome) => outcome.ok)).toHaveLength(1);
    await other.close();
  });

  test('its holder is idle in the transaction: loses the session within seconds, the others go on', async () => {
    const { Client } = await import('pg');
    const { clientConfig, WRITER_LIMITS } = await import('../../src/database/connect.ts');
    const stopped = new Client(clientConfig({ url: database.url, program: 'stopped', limits: WRITER_LIMITS }));
    stopped.on('error', () => undefined);
    await stopped.connect();
    await stopped.query('BEGIN');
    await stopped.query(`SELECT pg_advisory_xact_lock(${DECISION_LOCK})`);
    const started = performance.now();
    expect((await execute(transactor, requestNodeCommand, nodeRequest())).ok).toBe(true);
    expect(performance.now() - started).toBeLessThan(5_000);
    await stopped.end().catch(() => undefined);
  });
});

describe('the queue', () => {
  test('full: refused at once, those inside are decided', async () => {
    const small = testTransactor(database.url, { maxQueue: 2, maxBatch: 1 });
    await using lock = await holdLock();
    const gathering = execute(small, requestNodeCommand, nodeRequest());
    const inside = [nodeRequest(), nodeRequest()].map((r) => execute(small, requestNodeCommand, r));
    await expect(execute(small, requestNodeCommand, nodeRequest())).rejects.toMatchObject({ reason: 'queue_full' });
    await lock.release();
    await gathering;
    expect((await Promise.all(inside)).map((outcome) => outcome.ok)).toEqual([true, true]);
    await small.close();
  });

  test('caller gone before its turn: dropped, nothing appended', async () => {
    await using lock = await holdLock();
    const request = nodeRequest();
    const gone = new AbortController();
    const gathering = execute(transactor, requestNodeCommand, nodeRequest());
    const dropped = transactor.execute(requestNodeCommand, request, { actor: OPERATOR, signal: gone.signal });
    const rejected = expect(dropped).rejects.toMatchObject({ reason: 'caller_gone' });
    gone.abort();
    await lock.release();
    await gathering;
    await rejected;
    const { rows } = await database.pool.query('SELECT 1 FROM fleet.fleet_nodes WHERE node_id = $1', [request.node_id]);
    expect(rows).toEqual([]);
  });

  test('caller gone before it asked: dropped, and whoever asks next is answered', async () => {
    const idle = testTransactor(database.url);
    const dropped = idle.execute(requestNodeCommand, nodeRequest(), { actor: OPERATOR, signal: AbortSignal.abort() });
    await expect(dropped).rejects.toMatchObject({ reason: 'caller_gone' });
    expect((await execute(idle, requestNodeCommand, nodeRequest())).ok).toBe(true);
    await idle.close();
  }, 10_000);

  test('closed: what waits is decided, what comes later is refused', async () => {
    const closing = testTransactor(database.url);
    const inside = execute(closing, requestNodeCommand, nodeRequest());
    await closing.close();
    expect((await inside).ok).toBe(true);
    await expect(execute(closing, requestNodeCommand, nodeRequest())).rejects.toMatchObject({ reason: 'closed' });
  });
});

describe('the connection', () => {
  test('broken between two batches: the next command does not notice', async () => {
    await execute(transactor, requestNodeCommand, nodeRequest());
    await database.pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'pushleft test%' AND pid <> pg_backend_pid()`,
    );
    expect((await execute(transactor, requestNodeCommand, nodeRequest())).ok).toBe(true);
  });

  test('broken inside a batch: decided again on a new one, once', async () => {
    const request = nodeRequest();
    let times = 0;
    const definition: CommandDefinition<typeof request, unknown> = {
      ...requestNodeCommand,
      async load(rows, command) {
        times += 1;
        if (times === 1) {
          const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE state = 'idle in transaction' AND application_name LIKE 'pushleft test%' AND datname = current_database()`;
          await waitFor(async () => (await database.pool.query(terminate)).rowCount === 1, {
            what: 'a batch is broken',
          });
        }
        return requestNodeCommand.load(rows, command);
      },
      decide: (command, state, time) => requestNodeCommand.decide(command, state as never, time),
    };
    expect(await execute(transactor, definition, request)).toMatchObject({ ok: true, events: [{}] });
    expect(times).toBe(2);
  });

  test('nobody there: UnavailableError after the patience', async () => {
    const nowhere = testTransactor('postgres://nobody:x@127.0.0.1:1/none', { patienceMs: 0 });
    await expect(execute(nowhere, requestNodeCommand, nodeRequest())).rejects.toMatchObject({ reason: 'database' });
    await nowhere.close();
  });
});

describe('the definitions', () => {
  afterEach(async () => {
    await database.pool.query(`UPDATE fleet.definition SET digest = replace(digest, 'other ', '')`);
  });

  test('tables of another program version: nothing is decided', async () => {
    await database.pool.query(`UPDATE fleet.definition SET digest = 'other ' || digest`);
    const before = await logTypes();
    await expect(execute(transactor, requestNodeCommand, nodeRequest())).rejects.toMatchObject({
      reason: 'definition_mismatch',
    });
    expect(await logTypes()).toEqual(before);
  });
});

describe('the two times', () => {
  test('database clock before the last event: recorded at the last event, decided at the clock', async () => {
    const ahead = Date.now() + 3_600_000;
    const own = await createTestDatabase();
    const t = testTransactor(own.url);
    await execute(t, requestNodeCommand, nodeRequest());
    await own.pool.query(`ALTER TABLE log.events DISABLE TRIGGER ALL`);
    await own.pool.query(`UPDATE log.events SET at = $1`, [ahead]);
    let seen = { now: 0, at: 0 };
    await execute(
      t,
      custom({
        decide: (_c, _s, time) => {
          seen = time;
          return nothing();
        },
      }),
      null,
    );
    expect(seen.at).toBe(ahead);
    expect(Math.abs(seen.now - Date.now())).toBeLessThan(60_000);
    await t.close();
    await own.drop();
  });
});
