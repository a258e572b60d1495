import { describe, expect, test } from 'vitest';
import {
  cancelDrainCommand,
  migrateInstanceCommand,
  noteOverdueDrainCommand,
  retireNodeCommand,
  revokeNodeCommand,
  setMeshCoordinatorCommand,
  startDrainCommand,
  takeOfflineCommand,
} from '../../../src/commands/node-exit.ts';
import { admitted, JOB, make, NODE, SERIAL, START, sample } from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const started = sample.node_drain_started;
const plain = started.data;
const migrating = { ...plain, migrate: true, max_in_flight: 1 };
const of = { node_id: NODE };
const { deployment_id, instance_id } = sample.instance_placed.data;
/** The node runs one web instance. */
const running = [
  ...admitted,
  sample.deployment_created,
  sample.instance_requested,
  sample.instance_placed,
  sample.network_admitted,
  sample.instance_ready,
  sample.deployment_became_live,
];
const replacement = make('instance_replacement_queued', { cause: 'migration' });
const emptied = [...running, started, sample.instance_teardown_queued, sample.instance_removed];

describe('fleet drain', () => {
  test('an active node: node_drain_started', async () =>
    expect(await given(...admitted).when(startDrainCommand, plain)).toEqual([started]));

  test('an unhealthy node: node_drain_started', async () =>
    expect(await given(...admitted, sample.node_became_unhealthy).when(startDrainCommand, plain)).toEqual([started]));

  test('repeated: no new event', async () =>
    expect(await given(...admitted, started).when(startDrainCommand, plain)).toEqual([]));

  test('a plain drain that is to migrate now: node_drain_started', async () =>
    expect(await given(...admitted, started).when(startDrainCommand, migrating)).toEqual([
      make('node_drain_started', migrating),
    ]));

  test.each([
    ['unknown', [], refusal('node_unknown', { node: NODE })],
    [
      'provisioning',
      [sample.node_provisioning_requested],
      refusal('node_not_active', { node_id: NODE, status: 'provisioning' }),
    ],
    ['lost', [...admitted, sample.node_lost], refusal('node_lost', { node_id: NODE, status: 'lost' })],
    ['revoked', [...admitted, sample.node_revoked], refusal('node_revoked', { node_id: NODE, status: 'revoked' })],
    ['retired', [...admitted, sample.node_retired], refusal('node_retired', { node_id: NODE, status: 'retired' })],
  ])('%s: refused', async (_, history, refused) =>
    expect(await given(...history).when(startDrainCommand, plain)).toEqual(refused),
  );
});

describe('fleet undrain', () => {
  test('nothing has moved: node_drain_cancelled', async () =>
    expect(await given(...running, started).when(cancelDrainCommand, of)).toEqual([sample.node_drain_cancelled]));

  test('repeated: no new event', async () =>
    expect(await given(...running, started, sample.node_drain_cancelled).when(cancelDrainCommand, of)).toEqual([]));

  test('a replacement is on its way: refused', async () =>
    expect(
      await given(...running, make('node_drain_started', migrating), replacement).when(cancelDrainCommand, of),
    ).toEqual(refusal('drain_has_moved', { node_id: NODE, instance_id })));

  test('lost: refused', async () =>
    expect(await given(...admitted, sample.node_lost).when(cancelDrainCommand, of)).toEqual(
      refusal('node_not_draining', { node_id: NODE, status: 'lost' }),
    ));
});

describe('a service on a node that is drained with migration', () => {
  const drained = [...running, make('node_drain_started', migrating)];

  test('ready: its replacement is queued, one generation later', async () =>
    expect(await given(...drained).when(migrateInstanceCommand, { instance_id })).toEqual([replacement]));

  test('repeated: no new event', async () =>
    expect(await given(...drained, replacement).when(migrateInstanceCommand, { instance_id })).toEqual([]));

  test('drained without migration: refused', async () =>
    expect(await given(...running, started).when(migrateInstanceCommand, { instance_id })).toEqual(
      refusal('instance_not_waiting', { instance_id, status: 'ready' }),
    ));

  test('as many as may are on their way: refused', async () => {
    const second = `${deployment_id}.web.1.1`;
    const other = [
      make('instance_requested', { instance_id: second, slot: 1 }),
      make('instance_placed', { instance_id: second, subnet_slot: 1 }),
      make('network_admitted', { instance_id: second, job_id: JOB }),
      make('instance_ready', { instance_id: second }),
    ];
    expect(
      await given(...running, ...other, make('node_drain_started', migrating), replacement).when(
        migrateInstanceCommand,
        { instance_id: second },
      ),
    ).toEqual(refusal('instance_not_waiting', { instance_id: second, status: 'ready' }));
  });
});

describe('the deadline of a drain', () => {
  const deadline_at = START + 3_600_000;
  const timed = make('node_drain_started', { ...migrating, deadline_at });

  test('passed, with an instance still there: node_drain_overdue names it', async () =>
    expect(
      await given(...running, timed)
        .at(deadline_at)
        .when(noteOverdueDrainCommand, of),
    ).toEqual([sample.node_drain_overdue]));

  test('repeated: no new event', async () =>
    expect(
      await given(...running, timed, sample.node_drain_overdue)
        .at(deadline_at)
        .when(noteOverdueDrainCommand, of),
    ).toEqual([]));

  test('not passed, or nothing is there any more: no event', async () => {
    expect(
      await given(...running, timed)
        .at(deadline_at - 1)
        .when(noteOverdueDrainCommand, of),
    ).toEqual([]);
    expect(
      await given(...admitted, timed)
        .at(deadline_at)
        .when(noteOverdueDrainCommand, of),
    ).toEqual([]);
  });
});

describe('fleet offline', () => {
  test('drained and empty: node_taken_offline', async () =>
    expect(await given(...emptied).when(takeOfflineCommand, of)).toEqual([sample.node_taken_offline]));

  test('repeated: no new event', async () =>
    expect(await given(...emptied, sample.node_taken_offline).when(takeOfflineCommand, of)).toEqual([]));

  test('something is still there: refused', async () =>
    expect(await given(...running, started).when(takeOfflineCommand, of)).toEqual(
      refusal('node_busy', { node_id: NODE, allocations: 2, leases: 0, hostnames: 0 }),
    ));

  test('active: refused', async () =>
    expect(await given(...admitted).when(takeOfflineCommand, of)).toEqual(
      refusal('node_not_draining', { node_id: NODE, status: 'active' }),
    ));
});

describe('fleet decommission', () => {
  const revoked = make('certificates_revoked', { certificate_ids: [SERIAL], reason: 'operator' });

  test('drained and empty: its certificates are revoked, and it is retired', async () =>
    expect(await given(...emptied).when(retireNodeCommand, of)).toEqual([revoked, sample.node_retired]));

  test('jobs wait for it: they are given up', async () =>
    expect(await given(...emptied, sample.job_queued).when(retireNodeCommand, of)).toEqual([
      make('job_fenced', { reason: 'node_retired' }),
      revoked,
      sample.node_retired,
    ]));

  test('repeated: no new event', async () =>
    expect(await given(...emptied, revoked, sample.node_retired).when(retireNodeCommand, of)).toEqual([]));

  test.each([
    ['offline', [...emptied, sample.node_taken_offline]],
    ['lost', [...admitted, sample.node_lost]],
    ['drained', [...admitted, started]],
  ])('%s: retired', async (_, history) =>
    expect(await given(...history).when(retireNodeCommand, of)).toEqual([revoked, sample.node_retired]),
  );

  test('provisioning: retired, without a certificate to revoke', async () =>
    expect(await given(sample.node_provisioning_requested).when(retireNodeCommand, of)).toEqual([sample.node_retired]));

  test('active: refused', async () =>
    expect(await given(...admitted).when(retireNodeCommand, of)).toEqual(
      refusal('node_in_service', { node_id: NODE, status: 'active' }),
    ));

  test('something is held of it: refused', async () =>
    expect(await given(...running, started).when(retireNodeCommand, of)).toEqual(
      refusal('node_busy', { node_id: NODE, allocations: 2, leases: 0, hostnames: 0 }),
    ));

  test('it works on a job: refused until that has ended', async () => {
    const working = [...admitted, sample.job_queued, sample.job_leased, started];
    expect(await given(...working).when(retireNodeCommand, of)).toEqual(
      refusal('node_busy', { node_id: NODE, allocations: 0, leases: 1, hostnames: 0 }),
    );
    expect(await given(...working, sample.job_completed).when(retireNodeCommand, of)).toEqual([
      revoked,
      sample.node_retired,
    ]);
  });

  test('it still serves a hostname: refused', async () => {
    const route = { node_id: NODE };
    const serving = [
      ...admitted,
      sample.deployment_created,
      make('ingress_route_published', route),
      make('ingress_route_activated', route),
      started,
    ];
    expect(await given(...serving).when(retireNodeCommand, of)).toEqual(
      refusal('node_busy', { node_id: NODE, allocations: 0, leases: 0, hostnames: 1 }),
    );
  });

  test('lost, with a database on its disk: refused until that is released', async () => {
    const stranded = [
      ...admitted,
      sample.database_instance_created,
      sample.database_instance_ready,
      make('node_lost', { stranded_database_ids: [sample.database_instance_created.data.database_id] }),
      sample.database_instance_stranded,
    ];
    expect(await given(...stranded).when(retireNodeCommand, of)).toEqual(
      refusal('database_held', { node_id: NODE, database: 'orders' }),
    );
    expect(await given(...stranded, sample.database_instance_released).when(retireNodeCommand, of)).toEqual([
      revoked,
      sample.node_retired,
    ]);
  });
});

describe('fleet revoke', () => {
  const revoked = make('certificates_revoked', { certificate_ids: [SERIAL], reason: 'operator' });

  test('an active node with an instance: everything is taken from it, nothing is told to it any more', async () =>
    expect(await given(...running).when(revokeNodeCommand, of)).toEqual([
      make('node_revoked', {
        lost_instance_ids: [instance_id],
        replacement_instance_ids: [replacement.data.instance_id],
        released_allocation_ids: [`${instance_id}/network`, `${instance_id}/role`],
      }),
      revoked,
      make('instance_replacement_queued', { cause: 'node_revoked' }),
    ]));

  test('repeated: no new event', async () =>
    expect(await given(...admitted, sample.node_revoked).when(revokeNodeCommand, of)).toEqual([]));

  test('retired: refused', async () =>
    expect(await given(...admitted, sample.node_retired).when(revokeNodeCommand, of)).toEqual(
      refusal('node_retired', { node_id: NODE }),
    ));
});

describe('fleet mesh-coordinator', () => {
  const { data } = sample.node_mesh_coordinator_set;

  test('set: node_mesh_coordinator_set', async () =>
    expect(await given(...admitted).when(setMeshCoordinatorCommand, data)).toEqual([sample.node_mesh_coordinator_set]));

  test('repeated: no new event', async () =>
    expect(await given(...admitted, sample.node_mesh_coordinator_set).when(setMeshCoordinatorCommand, data)).toEqual(
      [],
    ));
});
