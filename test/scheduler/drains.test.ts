import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { retireNodeCommand, startDrainCommand } from '../../src/commands/node-exit.ts';
import { PassingFleet, WEB } from './support/passing-fleet.ts';

const HOSTNAME = 'shop.example.com';
const INGRESS_ONLY = { ingress: true, capacity: { cpu_millis: 0, memory_mb: 0, disk_gb: 0 } };

let fleet: PassingFleet;

beforeEach(async () => {
  fleet = await PassingFleet.start();
});
afterEach(() => fleet[Symbol.asyncDispose]());

const drain = (node_id: string, change: object = {}) =>
  fleet.give(startDrainCommand, { node_id, migrate: true, max_in_flight: 1, deadline_at: null, ...change });

const refusalOf = async (node_id: string) => {
  const outcome = await fleet.give(retireNodeCommand, { node_id });
  return outcome.ok ? undefined : outcome.refusal.code;
};

describe('a node is drained with migration', () => {
  test('its service: replaced, ready, served, and only then taken down; then the node may go', async () => {
    const [node] = await fleet.addNodes({});
    await fleet.addNodes(INGRESS_ONLY);
    const id = await fleet.deploy();
    await fleet.settle();
    await fleet.addNodes({});
    const before = await fleet.head();
    await drain(node ?? '');
    expect(await refusalOf(node ?? '')).toBe('node_busy');
    await fleet.settle();
    expect(await fleet.instances()).toEqual(['web.0.1 removed', 'web.0.2 ready']);
    expect([await fleet.status(id), await fleet.routes()]).toEqual([
      'live',
      [`${HOSTNAME}/1 removed`, `${HOSTNAME}/2 active`],
    ]);
    expect(await fleet.typesAfter(before)).toEqual([
      'node_drain_started',
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
      'instance_teardown_queued',
      'job_queued',
      'job_leased',
      'job_completed',
      'instance_removed',
    ]);
    expect(await refusalOf(node ?? '')).toBeUndefined();
  });

  test('its replacement is lost on its way: the one after that takes over, and there is one', async () => {
    const [node] = await fleet.addNodes({});
    await fleet.addNodes(INGRESS_ONLY);
    const id = await fleet.deploy();
    await fleet.settle();
    const [other] = await fleet.addNodes({});
    await drain(node ?? '');
    await fleet.workloads();
    expect(await fleet.nodeOf(id, 'web.0.2')).toBe(other);
    await fleet.lose(other ?? '');
    await fleet.addNodes({});
    await fleet.settle();
    expect(await fleet.instances()).toEqual(['web.0.1 removed', 'web.0.2 lost', 'web.0.3 ready']);
  });

  test('three instances, one at a time: never more than one is on its way', async () => {
    const [node] = await fleet.addNodes({});
    await fleet.addNodes(INGRESS_ONLY);
    await fleet.deploy({ roles: [{ ...WEB, count: 3 }] });
    await fleet.settle();
    await fleet.addNodes({});
    await drain(node ?? '');
    for (let pass = 0; pass < 20; pass += 1) {
      await fleet.workloads();
      const all = await fleet.instances();
      const underway = all.filter((one) => /\.2 (?:pending_placement|reserved|deploying)$/.test(one));
      const leaving = all.filter((one) => one.endsWith('.1 draining'));
      expect(underway.length + leaving.length).toBeLessThanOrEqual(1);
      await fleet.work();
    }
    expect(await fleet.instances()).toEqual(
      ['0', '1', '2'].flatMap((slot) => [`web.${slot}.1 removed`, `web.${slot}.2 ready`]),
    );
  });

  test('its replacement never becomes ready: the deadline names what is still there, and that serves on', async () => {
    const [node] = await fleet.addNodes({});
    await fleet.addNodes(INGRESS_ONLY);
    const id = await fleet.deploy();
    await fleet.settle();
    await drain(node ?? '', { deadline_at: Date.now() - 1 });
    await fleet.settle();
    const { rows } = await fleet.database.pool.query(
      `SELECT data FROM fleet.fleet_events WHERE type = 'node_drain_overdue'`,
    );
    expect(rows).toEqual([{ data: { node_id: node, blocking_instance_ids: [`${id}.web.0.1`] } }]);
    expect(await fleet.instances()).toEqual(['web.0.1 ready', 'web.0.2 pending_placement']);
    expect(await fleet.routes()).toEqual([`${HOSTNAME}/1 active`]);
    expect(await refusalOf(node ?? '')).toBe('node_busy');
  });

  test('an ingress host: its hostname moves to another one, and it may go', async () => {
    const [ingress] = await fleet.addNodes(INGRESS_ONLY);
    await fleet.addNodes({});
    await fleet.deploy();
    await fleet.settle();
    await fleet.addNodes(INGRESS_ONLY);
    await drain(ingress ?? '');
    await fleet.settle();
    expect(await fleet.routes()).toEqual([`${HOSTNAME}/1 removed`, `${HOSTNAME}/2 active`]);
    expect(await refusalOf(ingress ?? '')).toBeUndefined();
  });
});

describe('a node is drained plainly', () => {
  test('its service stays; what had only a place there looks for another', async () => {
    const [node] = await fleet.addNodes({});
    await fleet.addNodes(INGRESS_ONLY);
    await fleet.deploy();
    await fleet.settle();
    const second = await fleet.deploy({ name: 'second', hostnames: [] });
    await fleet.workloads();
    await drain(node ?? '', { migrate: false, max_in_flight: null });
    await fleet.settle();
    const { rows } = await fleet.database.pool.query(
      'SELECT deployment_id = $1 AS is_second, status FROM fleet.application_instances ORDER BY 1',
      [second],
    );
    expect(rows).toEqual([
      { is_second: false, status: 'ready' },
      { is_second: true, status: 'pending_placement' },
    ]);
  });
});
