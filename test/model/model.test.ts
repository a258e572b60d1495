import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkConvergence } from './convergence.ts';
import { checkFleet, checkHistory } from './invariants.ts';
import { replay } from './replay.ts';
import { play, script } from './script.ts';
import type { World } from './world.ts';

/** `npm run test:model` plays 5,000, and 200 of them on PostgreSQL as well. */
const SEQUENCES = Number(process.env['PUSHLEFT_TEST_SEQUENCES'] ?? 50);
/** The same sequences each time, so that a run says something of the change and not of its luck. PUSHLEFT_TEST_SEED plays others. */
const SEED = Number(process.env['PUSHLEFT_TEST_SEED'] ?? 20_261_201);
const REPLAYED = Math.ceil(SEQUENCES / 25);
/** A sequence takes some 70 ms, on PostgreSQL half a second, both several times that on a busy machine. */
const PATIENCE_MS = 60_000 + SEQUENCES * 200;

test(
  'whatever happens in whatever order: nothing is done twice, lost or left, and the fleet comes to rest',
  async () => {
    const seen = { lost: 0, replaced: 0, live: 0, relocated: 0, fenced: 0, held: 0 };
    const property = fc.asyncProperty(script, async (steps) => {
      const world = await play(steps, checkFleet);
      await checkConvergence(world);
      checkHistory(world.log.events);
      count(world, seen);
    });
    await fc.assert(property, { numRuns: SEQUENCES, seed: SEED });
    console.info(JSON.stringify({ sequences: SEQUENCES, seed: SEED, ...seen }));
    // Otherwise nothing was shown.
    for (const [what, times] of Object.entries(seen)) expect([what, times > SEQUENCES / 20]).toEqual([what, true]);
  },
  PATIENCE_MS,
);

test(
  'the same on PostgreSQL: the same events',
  async () => {
    const property = fc.asyncProperty(script, async (steps) => {
      const { trace, log } = await play(steps);
      const replayed = await replay(trace);
      expect(replayed).toEqual(log.events.map(({ type, data }) => ({ type, data })));
    });
    await fc.assert(property, { numRuns: REPLAYED, seed: SEED });
  },
  PATIENCE_MS,
);

function count({ log }: World, seen: Record<'lost' | 'replaced' | 'live' | 'relocated' | 'fenced' | 'held', number>) {
  for (const { type, data } of log.events) {
    if (type === 'node_lost') {
      seen.lost += 1;
      seen.fenced += data.fenced_jobs.length;
    }
    if (type === 'instance_replacement_queued') seen.replaced += 1;
    if (type === 'deployment_became_live') seen.live += 1;
    if (type === 'ingress_route_relocated') seen.relocated += 1;
    if (type === 'node_loss_held') seen.held += 1;
  }
}
