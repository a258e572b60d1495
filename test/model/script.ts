import fc from 'fast-check';
import { STEPS, type Step, take } from './steps.ts';
import { World } from './world.ts';

/** How likely steps are beside others, where that is not 1. */
const WEIGHTS: Partial<Record<Step['what'], number>> = {
  deploy: 3,
  schedule: 3,
  work: 3,
  ask: 3,
  succeed: 3,
  settle: 5,
  time: 2,
  lose: 2,
};

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.oneof(...STEPS.map((what) => ({ weight: WEIGHTS[what] ?? 1, arbitrary: fc.constant(what) }))),
  n: fc.nat({ max: 9_999 }),
});

/** Anything that may happen to a fleet, one thing after the other. */
export const script = fc.array(step, { minLength: 20, maxLength: 80, size: 'max' });

/** Plays a script in a fleet of four hosts, two of them with an ingress; `check` sees the fleet after each step. */
export async function play(steps: readonly Step[], check: (world: World) => void = () => {}): Promise<World> {
  const world = new World(7);
  for (let i = 0; i < 4; i += 1) await world.addNode(i, 'application', i >= 2);
  for (const one of steps) {
    await take(world, one);
    check(world);
  }
  return world;
}
