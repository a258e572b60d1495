import { describe, expect, test } from 'vitest';
import { createDatabaseCommand, releaseDatabaseCommand } from '../../src/commands/database.ts';
import { ensureDatabaseJob } from '../../src/commands/workload-jobs.ts';
import { MOST_DATABASES } from '../../src/domain/node/limits.ts';
import { admitted, make, NODE, sample } from '../support/events.ts';
import { given, refusal } from '../support/given.ts';

const created = make('database_instance_created', { cpu_millis: 1_000, memory_mb: 1_024, disk_gb: 10 });
const database = created.data;
const job = ensureDatabaseJob(database.job_id, database, 1);
const { payload: _, ...queued } = job;
const command = { database, job };
const { database_id } = database;
const heard = () => given(...admitted).silentFor(NODE, 0);

describe('workload database create', () => {
  test('a node with room that was heard: created there, and its job is queued', async () =>
    expect(await heard().when(createDatabaseCommand, command)).toEqual([created, make('job_queued', queued)]));

  test('repeated: no new event', async () =>
    expect(
      await heard()
        .and(created)
        .when(createDatabaseCommand, { ...command, database: { ...database, database_id: NODE } }),
    ).toEqual([]));

  test('the name is taken by another one: refused', async () =>
    expect(
      await heard()
        .and(created)
        .when(createDatabaseCommand, { ...command, database: { ...database, memory_mb: 2_048 } }),
    ).toEqual(refusal('database_name_taken', { name: 'orders' })));

  test('more than the node has left: refused', async () =>
    expect(
      await heard().when(createDatabaseCommand, { ...command, database: { ...database, disk_gb: 1_000 } }),
    ).toEqual(refusal('node_full', { node_id: NODE, lacking: 'disk' })));

  test('as many on the node as a loss can name: refused', async () => {
    const others = Array.from({ length: MOST_DATABASES }, (_, i) =>
      make('database_instance_created', {
        database_id: `82000000-0000-4000-8000-${String(i + 100).padStart(12, '0')}`,
        name: `db-${i}`,
        cpu_millis: 1,
        memory_mb: 1,
        disk_gb: 0,
      }),
    );
    expect(
      await heard()
        .and(...others)
        .when(createDatabaseCommand, command),
    ).toEqual(refusal('node_full', { node_id: NODE, lacking: 'places' }));
    expect(
      await heard()
        .and(...others.slice(1))
        .when(createDatabaseCommand, command),
    ).toEqual([created, make('job_queued', queued)]);
  });

  test('a node that was not heard: refused', async () =>
    expect(await given(...admitted).when(createDatabaseCommand, command)).toEqual(
      refusal('node_not_schedulable', { node_id: NODE }),
    ));

  test('an unknown node: refused', async () =>
    expect(await given().when(createDatabaseCommand, command)).toEqual(refusal('node_unknown', { node: NODE })));
});

describe('workload database release', () => {
  const stranded = [
    ...admitted,
    created,
    sample.database_instance_ready,
    make('node_lost', { stranded_database_ids: [database_id] }),
    sample.database_instance_stranded,
  ];

  test('stranded: database_instance_released', async () =>
    expect(await given(...stranded).when(releaseDatabaseCommand, { database_id })).toEqual([
      sample.database_instance_released,
    ]));

  test('repeated: no new event', async () =>
    expect(
      await given(...stranded, sample.database_instance_released).when(releaseDatabaseCommand, { database_id }),
    ).toEqual([]));

  test('ready: refused', async () =>
    expect(
      await given(...admitted, created, sample.database_instance_ready).when(releaseDatabaseCommand, { database_id }),
    ).toEqual(refusal('database_not_stranded', { database_id, status: 'ready' })));

  test('unknown: refused', async () =>
    expect(await given().when(releaseDatabaseCommand, { database_id })).toEqual(
      refusal('database_unknown', { database: database_id }),
    ));
});
