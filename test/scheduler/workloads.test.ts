import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { removeDeploymentCommand } from '../../src/commands/deployment.ts';
import { PassingFleet, WEB } from './support/passing-fleet.ts';

const HOSTNAME = 'shop.example.com';
const SMALL = { cpu_millis: 150, memory_mb: 8_000, disk_gb: 80 };
const ONCE = { ...WEB, listens: false, serves_hostnames: false, readiness_path: null };

let fleet: PassingFleet;

beforeEach(async () => {
  fleet = await PassingFleet.start();
});
afterEach(() => fleet[Symbol.asyncDispose]());

describe('a deployment', () => {
  test('nodes with room and an ingress: placed, admitted, started, published, live; exactly these events', async () => {
    await fleet.addNodes({}, { ingress: true });
    const before = await fleet.head();
    const id = await fleet.deploy();
    await fleet.settle();
    expect(await fleet.status(id)).toBe('live');
    expect(await fleet.typesAfter(before)).toEqual([
      'deployment_created',
      'instance_requested',
      'instance_placed',
      'network_admitted',
      'job_queued',
      'job_leased',
      'job_completed',
      'instance_ready',
      'ingress_route_published',
      'job_queued',
      'job_leased',
      'job_completed',
      'ingress_route_activated',
      'deployment_became_live',
    ]);
  });

  test('at rest: a pass changes nothing', async () => {
    await fleet.addNodes({ ingress: true });
    await fleet.deploy();
    await fleet.settle();
    const before = await fleet.head();
    await fleet.workloads();
    expect(await fleet.typesAfter(before)).toEqual([]);
  });

  test('three instances and three nodes: one on each', async () => {
    await fleet.addNodes({ ingress: true }, {}, {});
    const id = await fleet.deploy({ roles: [{ ...WEB, count: 3 }] });
    await fleet.settle();
    const nodes = await Promise.all([0, 1, 2].map((slot) => fleet.nodeOf(id, `web.${slot}.1`)));
    expect(new Set(nodes).size).toBe(3);
  });

  test('a release: runs first; the service is placed once it is done, and what ran holds nothing', async () => {
    await fleet.addNodes({ ingress: true, capacity: SMALL });
    const id = await fleet.deploy({ roles: [{ ...ONCE, role: 'migrate', run: 'release' }, WEB] });
    await fleet.workloads();
    expect(await fleet.instances()).toEqual(['migrate.0.1 deploying', 'web.0.1 pending_placement']);
    await fleet.settle();
    expect(await fleet.instances()).toEqual(['migrate.0.1 done', 'web.0.1 ready']);
    expect(await fleet.status(id)).toBe('live');
  });

  test('a release that fails: the deployment has failed, and nothing else was begun', async () => {
    await fleet.addNodes({ ingress: true });
    fleet.refuses = (kind) => kind === 'ensure_application';
    const id = await fleet.deploy({ roles: [{ ...ONCE, role: 'migrate', run: 'release' }, WEB] });
    await fleet.settle();
    expect(await fleet.status(id)).toBe('failed');
    expect(await fleet.instances()).toEqual(['migrate.0.1 removed', 'web.0.1 removed']);
  });

  test('removed: its hostname first, then its instance; nothing is held any more', async () => {
    await fleet.addNodes({ ingress: true });
    const id = await fleet.deploy();
    await fleet.settle();
    const before = await fleet.head();
    await fleet.give(removeDeploymentCommand, { deployment_id: id });
    await fleet.settle();
    expect(await fleet.typesAfter(before)).toEqual([
      'deployment_removal_requested',
      'ingress_route_removal_queued',
      'job_queued',
      'instance_teardown_queued',
      'job_queued',
      'job_leased',
      'job_completed',
      'ingress_route_removed',
      'job_leased',
      'job_completed',
      'instance_removed',
      'deployment_removed',
    ]);
    const { rows } = await fleet.database.pool.query(
      'SELECT allocation_id FROM fleet.fleet_allocations WHERE released_at IS NULL',
    );
    expect(rows).toEqual([]);
  });

  test('its node never says that it is there: the instance looks for another node after two minutes', async () => {
    const [node] = await fleet.addNodes({});
    const id = await fleet.deploy();
    await fleet.database.pool.query('UPDATE telemetry.node_liveness SET heard_ms = heard_ms - 60000');
    await fleet.workloads();
    await fleet.database.pool.query('UPDATE telemetry.node_liveness SET heard_ms = heard_ms - 30000');
    await fleet.database.pool.query(
      `UPDATE fleet.application_instances SET status = 'reserved', job_id = NULL, placed_at = placed_at - interval '3 minutes'`,
    );
    await fleet.workloads();
    expect([await fleet.nodeOf(id, 'web.0.1'), await fleet.instances()]).toEqual(['', ['web.0.1 pending_placement']]);
    expect(node).toBeDefined();
  });
});

describe('a node is lost', () => {
  test('its instance: one generation later on another node; its hostname follows once that is ready', async () => {
    const [, , ingress] = await fleet.addNodes({}, {}, { ingress: true, capacity: { ...SMALL, cpu_millis: 0 } });
    const id = await fleet.deploy();
    await fleet.settle();
    const first = await fleet.nodeOf(id, 'web.0.1');
    const before = await fleet.head();
    await fleet.lose(first);
    expect(await fleet.routes()).toEqual([`${HOSTNAME}/1 active`]);
    await fleet.settle();
    expect(await fleet.instances()).toEqual(['web.0.1 lost', 'web.0.2 ready']);
    expect(await fleet.routes()).toEqual([`${HOSTNAME}/1 removed`, `${HOSTNAME}/2 active`]);
    expect([await fleet.status(id), first === ingress]).toEqual(['live', false]);
    expect(await fleet.typesAfter(before)).toEqual([
      'node_lost',
      'instance_replacement_queued',
      'instance_placed',
      'network_admitted',
      'job_queued',
      'job_leased',
      'job_completed',
      'instance_ready',
      'ingress_route_published',
      'job_queued',
      'job_leased',
      'job_completed',
      'ingress_route_relocated',
      'ingress_route_activated',
    ]);
  });

  test('its ingress: the hostname moves to another ingress host', async () => {
    const [ingress, , other] = await fleet.addNodes(
      { ingress: true, capacity: { ...SMALL, cpu_millis: 0 } },
      {},
      {},
      {},
    );
    const id = await fleet.deploy();
    await fleet.settle();
    await fleet.addNodes({ ingress: true, capacity: { ...SMALL, cpu_millis: 0 } });
    await fleet.lose(ingress ?? '');
    await fleet.settle();
    expect(await fleet.routes()).toEqual([`${HOSTNAME}/1 draining`, `${HOSTNAME}/2 active`]);
    expect([await fleet.status(id), other !== undefined]).toEqual(['live', true]);
  });

  test('nowhere else is room: degraded; room comes: recovered', async () => {
    const [ingress] = await fleet.addNodes(
      { ingress: true, capacity: { ...SMALL, cpu_millis: 0 } },
      { capacity: SMALL },
      {
        ingress: true,
        capacity: { ...SMALL, cpu_millis: 0 },
      },
    );
    const id = await fleet.deploy();
    await fleet.settle();
    await fleet.lose(await fleet.nodeOf(id, 'web.0.1'));
    await fleet.settle();
    expect([await fleet.status(id), ingress !== undefined]).toEqual(['degraded', true]);
    await fleet.addNodes({ capacity: SMALL });
    await fleet.settle();
    expect([await fleet.status(id), await fleet.instances()]).toEqual(['live', ['web.0.1 lost', 'web.0.2 ready']]);
  });

  test('a sealed environment: only members; no other is left: degraded', async () => {
    const [member, ,] = await fleet.addNodes({}, {}, { ingress: true });
    const id = await fleet.deploy({ sealed_member_node_ids: [member ?? ''] });
    await fleet.settle();
    expect(await fleet.nodeOf(id, 'web.0.1')).toBe(member);
    await fleet.lose(member ?? '');
    await fleet.settle();
    const { rows } = await fleet.database.pool.query('SELECT status, degraded_reason FROM fleet.deployments');
    expect(rows).toEqual([{ status: 'degraded', degraded_reason: 'placement_rejected' }]);
  });

  test('what ran once on it: is not run again', async () => {
    await fleet.addNodes({}, {}, { ingress: true });
    const id = await fleet.deploy({ roles: [{ ...ONCE, role: 'migrate', run: 'release' }, WEB] });
    await fleet.settle();
    await fleet.lose(await fleet.nodeOf(id, 'migrate.0.1'));
    await fleet.settle();
    expect((await fleet.instances()).filter((one) => one.startsWith('migrate'))).toEqual(['migrate.0.1 done']);
  });

  test('relocation fails: the old route stays, degraded; again after five minutes, three times in all', async () => {
    await fleet.addNodes({}, {}, { ingress: true, capacity: { ...SMALL, cpu_millis: 0 } });
    const id = await fleet.deploy();
    await fleet.settle();
    fleet.refuses = (kind) => kind === 'publish_ingress';
    await fleet.lose(await fleet.nodeOf(id, 'web.0.1'));
    await fleet.settle();
    expect([await fleet.status(id), await fleet.routes()]).toEqual([
      'degraded',
      [`${HOSTNAME}/1 active`, `${HOSTNAME}/2 failed`],
    ]);
    for (let later = 0; later < 4; later += 1) {
      await fleet.database.pool.query(
        `UPDATE fleet.ingress_routes SET failed_at = failed_at - interval '301 seconds' WHERE status = 'failed'`,
      );
      await fleet.settle();
    }
    expect(await fleet.routes()).toEqual([
      `${HOSTNAME}/1 active`,
      `${HOSTNAME}/2 failed`,
      `${HOSTNAME}/3 failed`,
      `${HOSTNAME}/4 failed`,
    ]);
  });
});
