import { expect } from 'vitest';
import { sumOf } from '../../src/domain/allocation/state.ts';
import { nextInstanceId } from '../../src/domain/deployment/instance-id.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import type { World } from './world.ts';

/** What must be true of the fleet after every step, whatever came before. Throws where it is not. */
export function checkFleet(world: World): void {
  slotsHaveOneGeneration(world);
  allocationsFit(world);
  databasesStay(world);
  retiredNodesHoldNothing(world);
  hostnamesHaveOneRoute(world);
  lostInstancesAreReplaced(world);
}

/** At most one generation of a slot is active: ready, or done. One that another has taken over from drains. */
function slotsHaveOneGeneration(world: World): void {
  const active = world.instances(({ status }) => status === 'ready' || status === 'done');
  const slots = active.map(({ deployment_id, role, slot }) => `${deployment_id} ${role} ${slot}`);
  expect(slots).toEqual([...new Set(slots)]);
}

/** What is held of a node is never more than it has. */
function allocationsFit(world: World): void {
  const active = [...world.log.rows.rows('fleet_allocations').values()].filter((row) => row.released_at === null);
  for (const node of world.nodes()) {
    const used = sumOf(active.filter(({ node_id }) => node_id === node.node_id));
    const { cpu_millis, memory_mb, disk_gb } = node;
    expect([
      used.cpu_millis <= Number(cpu_millis),
      used.memory_mb <= Number(memory_mb),
      used.disk_gb <= Number(disk_gb),
    ]).toEqual([true, true, true]);
  }
}

/** A database stays where it was made, with what it holds there, until an operator releases it. */
function databasesStay(world: World): void {
  for (const { database_id, node_id, status } of world.databases()) {
    const held = world.log.rows.rows('fleet_allocations').get(`${database_id}/database`);
    expect([held?.node_id, held?.released_at === null]).toEqual([node_id, status !== 'released']);
  }
}

/** A retired node holds nothing: no allocation, no job that anybody could do. */
function retiredNodesHoldNothing(world: World): void {
  const retired = new Set(world.nodes().flatMap(({ node_id, status }) => (status === 'retired' ? [node_id] : [])));
  const allocations = [...world.log.rows.rows('fleet_allocations').values()].filter(
    ({ node_id, released_at }) => released_at === null && retired.has(node_id),
  );
  const jobs = world
    .jobs()
    .filter(
      ({ status, node_id, leased_to }) =>
        ['queued', 'leased'].includes(status) && retired.has(leased_to ?? node_id ?? ''),
    );
  expect([allocations, jobs]).toEqual([[], []]);
}

/** A hostname is served by one route at most, and one at most is on its way. */
function hostnamesHaveOneRoute(world: World): void {
  for (const status of ['active', 'publishing']) {
    const hostnames = world.routes((route) => route.status === status).map(({ hostname }) => hostname);
    expect(hostnames).toEqual([...new Set(hostnames)]);
  }
}

/** Every lost instance of a deployment that goes on has exactly one successor. */
function lostInstancesAreReplaced(world: World): void {
  for (const instance of world.instances(({ status }) => status === 'lost')) {
    const { status } = world.deployment(instance.deployment_id);
    if (!['deploying', 'live', 'degraded'].includes(status)) continue;
    const successors = world.instances((one) => one.replaces_instance_id === instance.instance_id);
    expect(successors.map(({ instance_id }) => instance_id)).toEqual([nextInstanceId(instance)]);
  }
}

/** What must be true of the whole history: no node is lost twice, and nothing is done for a job after it was fenced. */
export function checkHistory(events: readonly FleetEvent[]): void {
  const lost = new Set<string>();
  const fenced = new Set<string>();
  for (const { type, data } of events) {
    if (type === 'node_lost' || type === 'node_revoked') {
      if (type === 'node_lost') {
        expect(lost).not.toContain(data.node_id);
        lost.add(data.node_id);
      }
      for (const { job_id } of data.fenced_jobs) fenced.add(job_id);
    }
    if (type === 'job_fenced') fenced.add(data.job_id);
    if (type === 'job_completed' || type === 'job_leased' || type === 'job_returned') {
      expect(fenced).not.toContain(data.job_id);
    }
  }
}
