import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkFleet, checkHistory } from './invariants.ts';
import { STEPS, type Step, take } from './steps.ts';
import { World } from './world.ts';

/** How likely steps are beside others, where that is not 1. */
const WEIGHTS: Partial<Record<Step['what'], number>> = {
  schedule: 6,
  lease: 8,
  succeed: 8,
  hear: 3,
  deploy: 2,
  schedule_cut: 2,
};
const SEQUENCES = Number(process.env['PUSHLEFT_TEST_SEQUENCES'] ?? 1_000);

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.oneof(...STEPS.map((what) => ({ weight: WEIGHTS[what] ?? 1, arbitrary: fc.constant(what) }))),
  n: fc.nat({ max: 9_999 }),
});

test('whatever happens in whatever order: nothing is done twice, lost or left, and every lost instance has one successor', async () => {
  const seen = { lost: 0, replaced: 0, live: 0, relocated: 0, fenced: 0 };
  const property = fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 80, size: 'max' }), async (steps) => {
    const world = new World(7);
    world.pass(1);
    for (let i = 0; i < 4; i += 1) world.addNode(i, 'application', i >= 2);
    for (const one of steps) {
      await take(world, one);
      checkFleet(world);
    }
    checkHistory(world.log.events);
    for (const { type, data } of world.log.events) {
      if (type === 'node_lost') {
        seen.lost += 1;
        seen.fenced += data.fenced_jobs.length;
      }
      if (type === 'instance_replacement_queued') seen.replaced += 1;
      if (type === 'deployment_became_live') seen.live += 1;
      if (type === 'ingress_route_relocated') seen.relocated += 1;
    }
  });
  await fc.assert(property, { numRuns: SEQUENCES });
  // Otherwise nothing was shown.
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(SEQUENCES / 20);
  console.log(seen);
});
