import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { migrate } from '../../migrations/index.ts';
import { appenders } from '../../src/database/grants.ts';
import { verifyProjections } from '../../src/projector/verify.ts';
import type { Transactor } from '../../src/transactor/transactor.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { requestNodes, testTransactor } from '../support/fleet.ts';

let database: TestDatabase;
let transactor: Transactor;

beforeAll(async () => {
  database = await createTestDatabase();
  transactor = testTransactor(database.url);
  await requestNodes(transactor, 20);
});

afterAll(async () => {
  await transactor.close();
  await database.drop();
});

const NOTHING_TO_DO = { applied: [], rebuilt: false };

/** Every row of the catalogue that grants or tables are written in, and of the append grants, with the transaction that wrote it. */
async function written(): Promise<unknown[]> {
  const { rows } = await database.pool.query(`
    SELECT 'class' AS what, oid::text AS id, xmin::text FROM pg_class
      WHERE relnamespace IN ('log'::regnamespace, 'fleet'::regnamespace, 'telemetry'::regnamespace)
    UNION ALL SELECT 'namespace', nspname, xmin::text FROM pg_namespace WHERE nspname IN ('log', 'fleet', 'telemetry')
    UNION ALL SELECT 'function', proname, xmin::text FROM pg_proc WHERE pronamespace = 'log'::regnamespace
    UNION ALL SELECT 'append grant', role || ' ' || event_type, xmin::text FROM log.append_grants
    ORDER BY 1, 2`);
  return rows;
}

async function appendGrants(): Promise<string[]> {
  const { rows } = await database.pool.query<{ granted: string }>(
    `SELECT role || ' ' || event_type AS granted FROM log.append_grants`,
  );
  return rows.map(({ granted }) => granted).toSorted();
}

const ALL_GRANTS = Object.entries(appenders)
  .flatMap(([type, roles]) => roles.map((role) => `${role} ${type}`))
  .toSorted();

/** Has the tables look as if another version had built them. */
function outdate() {
  return database.pool.query(`UPDATE fleet.definition SET digest = 'another'`);
}

describe('migrate', () => {
  test('nothing to do: writes nothing', async () => {
    const before = await written();
    expect(await migrate(database.url)).toEqual(NOTHING_TO_DO);
    expect(await written()).toEqual(before);
  });

  test('grants that are missing and one too many: put right', async () => {
    await database.pool.query(`
      DELETE FROM log.append_grants WHERE event_type = 'job_queued';
      INSERT INTO log.append_grants VALUES ('pushleft_gateway', 'node_admitted');
      REVOKE SELECT ON fleet.jobs FROM pushleft_reader;
      REVOKE USAGE ON SCHEMA log FROM pushleft_scheduler;
      REVOKE EXECUTE ON FUNCTION log.append FROM pushleft_gateway`);
    await migrate(database.url);
    expect(await appendGrants()).toEqual(ALL_GRANTS);
    const { rows } = await database.pool.query(`
      SELECT has_table_privilege('pushleft_reader', 'fleet.jobs', 'SELECT') AS read,
             has_schema_privilege('pushleft_scheduler', 'log', 'USAGE') AS use,
             has_function_privilege('pushleft_gateway', 'log.append(bigint, text[], bytea[])', 'EXECUTE') AS append`);
    expect(rows).toEqual([{ read: true, use: true, append: true }]);
  });

  test("another version's tables: built anew, with the grants on them", async () => {
    await outdate();
    expect(await migrate(database.url)).toEqual({ applied: [], rebuilt: true });
    expect(await migrate(database.url)).toEqual(NOTHING_TO_DO);
    expect((await verifyProjections(database.pool)).differences).toEqual([]);
  });

  test('beside live commands, again and again: none of them fails', async () => {
    const load = { ends: false };
    let requested = 0;
    const commands = (async () => {
      while (!load.ends) requested += (await requestNodes(transactor, 1)).length;
    })();
    const migrations = (async () => {
      try {
        for (let round = 0; round < 15; round += 1) await migrate(database.url);
      } finally {
        load.ends = true;
      }
    })();
    await Promise.all([commands, migrations]);
    expect(requested).toBeGreaterThan(0);
  });

  test('three at once, when tables have to be built: one builds them, all end well', async () => {
    await outdate();
    const reports = await Promise.all([1, 2, 3].map(() => migrate(database.url)));
    expect(reports.filter(({ rebuilt }) => rebuilt)).toHaveLength(1);
    expect(await appendGrants()).toEqual(ALL_GRANTS);
  });

  test('three at once on an empty database: all end well', async () => {
    const name = `empty_${process.pid}`;
    await database.pool.query(`CREATE DATABASE ${name}`);
    const url = database.url.replace(/\/test_\w+\?/, `/${name}?`);
    try {
      const reports = await Promise.all([1, 2, 3].map(() => migrate(url)));
      expect(reports.filter(({ rebuilt }) => rebuilt)).toHaveLength(1);
      expect(reports.flatMap(({ applied }) => applied)).toEqual([
        '001-log',
        '002-telemetry',
        '003-roles',
        '004-node-hosts',
        '005-silence',
        '006-sources',
      ]);
    } finally {
      await database.pool.query(`DROP DATABASE ${name} WITH (FORCE)`);
    }
  });
});
