import { expect } from 'vitest';
import { MOST_ROUTE_FAILURES } from '../../src/domain/ingress/publish.ts';
import { take } from './steps.ts';
import type { World } from './world.ts';

/** More rounds than any fleet of the model needs. */
const ROUNDS = 12;

/**
 * Whatever has happened, once every host that may come back has, and the leader and the agents do their work, the fleet comes to rest:
 * nothing more is decided, and each deployment is whole, over, or says what it waits for. Throws where it is not so.
 */
export async function checkConvergence(world: World): Promise<void> {
  while (world.silent.size > 0) await take(world, { what: 'return', n: 0 });
  for (let round = 0; round < ROUNDS; round += 1) {
    // Leases that somebody forgot run out, failed routes may be tried again.
    for (const held of world.held) await world.expire(held);
    world.pass(310_000);
    await take(world, { what: 'sweep', n: 0 });
    await take(world, { what: 'settle', n: 0 });
  }
  const before = world.log.events.length;
  await take(world, { what: 'settle', n: 0 });
  await take(world, { what: 'sweep', n: 0 });
  expect(world.log.events.slice(before)).toEqual([]);
  for (const { deployment_id, name, status, hostnames } of world.deployments()) {
    if (['live', 'removed', 'failed'].includes(status)) continue;
    const instances = world.instances((one) => one.deployment_id === deployment_id);
    const exhausted = hostnames.some((hostname) =>
      world.routes((route) => route.hostname === hostname && route.failures >= MOST_ROUTE_FAILURES),
    );
    const waits = {
      forPlace: instances.some((one) => one.status === 'pending_placement'),
      forOperator: instances.some((one) => one.status === 'error') || exhausted,
      forIngress: world.nodes().every((node) => node.status !== 'active' || node.ingress === null),
    };
    expect([name, status, Object.values(waits).some(Boolean)]).toEqual([name, status, true]);
  }
}
