import { describe, expect, test } from 'vitest';
import { assessLossesCommand, releaseLossesCommand } from '../../../src/commands/loss.ts';
import { sweepNodeCommand } from '../../../src/commands/sweep.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import type { Pool } from '../../../src/domain/fields.ts';
import { MINUTE, make } from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const UNHEALTHY_MS = 90_000;
const LOST_MS = 300_000;
const HOUR = 60 * MINUTE;

/** The n-th node of a pool. */
const id = (pool: Pool, n: number) =>
  `${{ application: 'a', build: 'b', database: 'd' }[pool].repeat(8)}-0000-4000-8000-${String(n).padStart(12, '0')}`;
const ids = (pool: Pool, count: number) => Array.from({ length: count }, (_, n) => id(pool, n));
const assess = (pool: Pool = 'application') => ({ pool, unhealthy_after_ms: UNHEALTHY_MS });
const held = (pool: Pool, silent: number, pool_size: number) =>
  make('node_loss_held', { pool, silent_node_ids: ids(pool, silent), pool_size });
const recovered = (pool: Pool = 'application', node_ids: string[] = []) =>
  make('node_loss_released', { pool, cause: 'recovered', node_ids });
const released = (node_ids: string[]) =>
  make('node_loss_released', { pool: 'application', cause: 'operator', node_ids });
const lost = (node_id: string) => make('node_lost', { node_id });

/** Pools of so many active nodes. */
function nodesOf(sizes: Partial<Record<Pool, number>>): FleetEvent[] {
  return Object.entries(sizes).flatMap(([name, count]) => {
    const pool = name as Pool;
    return ids(pool, count).flatMap((node_id, n) => [
      make('node_provisioning_requested', { node_id, pool, name: `${pool}-${n}` }),
      make('node_enrolled', { node_id }),
    ]);
  });
}

type Given = ReturnType<typeof given>;

/** Of these pools the first so many nodes are silent, for so long; all others are heard now. */
function whereSilent(
  fleet: Given,
  sizes: Partial<Record<Pool, number>>,
  silent: Partial<Record<Pool, number>>,
  ms = UNHEALTHY_MS,
): Given {
  for (const [name, count] of Object.entries(sizes)) {
    const pool = name as Pool;
    for (const [n, node_id] of ids(pool, count).entries()) fleet.silentFor(node_id, n < (silent[pool] ?? 0) ? ms : 0);
  }
  return fleet;
}

/** What is decided about the application pool of such a fleet. */
const judge = (sizes: Partial<Record<Pool, number>>, silent: Partial<Record<Pool, number>>, ms?: number) =>
  whereSilent(given(...nodesOf(sizes)), sizes, silent, ms).when(assessLossesCommand, assess());

describe('nodes of a pool fall silent together', () => {
  test('half of them: not held', async () =>
    expect(await judge({ application: 6, build: 1 }, { application: 3 })).toEqual([]));

  test('more than half: held', async () =>
    expect(await judge({ application: 6, build: 1 }, { application: 4 })).toEqual([held('application', 4, 6)]));

  test('more than half, for less than an unhealthy node is silent: not held', async () =>
    expect(await judge({ application: 6 }, { application: 6 }, UNHEALTHY_MS - 1)).toEqual([]));

  test('a pool of two, one of them: not held; both: held', async () => {
    expect(await judge({ application: 2, build: 1 }, { application: 1 })).toEqual([]);
    expect(await judge({ application: 2, build: 1 }, { application: 2 })).toEqual([held('application', 2, 2)]);
  });

  test('a pool of one alone: not held; together with all of another pool: held', async () => {
    expect(await judge({ application: 1, build: 2 }, { application: 1, build: 1 })).toEqual([]);
    expect(await judge({ application: 1, build: 2, database: 1 }, { application: 1, build: 2 })).toEqual([
      held('application', 1, 1),
    ]);
  });

  test('the only node of the fleet: not held, since one is no crowd', async () =>
    expect(await judge({ application: 1 }, { application: 1 })).toEqual([]));

  test('every node of the fleet: each pool is held', async () => {
    const sizes = { application: 1, build: 1, database: 1 };
    const fleet = whereSilent(given(...nodesOf(sizes)), sizes, sizes);
    for (const pool of ['application', 'build', 'database'] as const) {
      expect(await fleet.when(assessLossesCommand, assess(pool))).toEqual([held(pool, 1, 1)]);
    }
  });

  test('all of another pool, none of this one: not held', async () =>
    expect(await judge({ application: 3, build: 3 }, { build: 3 })).toEqual([]));

  test('nodes of which nothing is known: heard', async () =>
    expect(await given(...nodesOf({ application: 3 })).when(assessLossesCommand, assess())).toEqual([]));

  test('nodes that are not waited for do not count', async () => {
    const gone = ids('application', 5).map((node_id, n) =>
      n % 2 === 0 ? make('node_revoked', { node_id }) : make('node_retired', { node_id }),
    );
    const fleet = given(...nodesOf({ application: 7 }), ...gone);
    expect(
      await whereSilent(fleet, { application: 7 }, { application: 6 }).when(assessLossesCommand, assess()),
    ).toEqual([]);
  });

  test('repeated: no new event', async () => {
    const fleet = whereSilent(given(...nodesOf({ application: 3 })), { application: 3 }, { application: 2 });
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([held('application', 2, 3)]);
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([]);
  });
});

describe('nodes of a pool fall silent one after the other', () => {
  const sizes = { application: 4, build: 1 };
  const afterTwo = () => given(...nodesOf(sizes), lost(id('application', 0)), lost(id('application', 1)));
  const third = (fleet: Given) =>
    fleet.silentFor(id('application', 2), UNHEALTHY_MS).when(assessLossesCommand, assess());
  const named = make('node_loss_held', {
    pool: 'application',
    silent_node_ids: [id('application', 2)],
    pool_size: 4,
  });

  test('two of four lost within the hour, a third is silent: held', async () =>
    expect(await third(afterTwo().after(HOUR - 1))).toEqual([named]));

  test('two of four lost an hour ago, a third is silent: not held', async () =>
    expect(await third(afterTwo().after(HOUR))).toEqual([]));

  test('two of four lost, and taken out of the fleet: not held', async () =>
    expect(
      await third(afterTwo().and(...ids('application', 2).map((node_id) => make('node_retired', { node_id })))),
    ).toEqual([]));

  test('two of four lost, none is silent now: not held', async () =>
    expect(await afterTwo().when(assessLossesCommand, assess())).toEqual([]));
});

describe('a pool is held', () => {
  const sizes = { application: 8, build: 1 };
  const holding = () => given(...nodesOf(sizes), held('application', 5, 8));
  const judgeHeld = (silent: number) =>
    whereSilent(holding(), sizes, { application: silent }).when(assessLossesCommand, assess());

  test('half are silent: still held, so that it does not flutter', async () => expect(await judgeHeld(4)).toEqual([]));

  test('three of eight: still held', async () => expect(await judgeHeld(3)).toEqual([]));

  test('a quarter: released', async () => expect(await judgeHeld(2)).toEqual([recovered()]));

  test('none: released', async () => expect(await judgeHeld(0)).toEqual([recovered()]));

  test('a pool of three, one of them, which any pool may lose: released', async () => {
    const three = { application: 3, build: 1 };
    const fleet = given(...nodesOf(three), held('application', 2, 3));
    expect(await whereSilent(fleet, three, { application: 1 }).when(assessLossesCommand, assess())).toEqual([
      recovered(),
    ]);
  });

  test('released by recovery, repeated: no new event', async () => {
    const fleet = whereSilent(holding(), sizes, {});
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([recovered()]);
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([]);
  });

  test('5 of 6 silent for as long as it takes to be lost: none is lost; once all are heard again, none either', async () => {
    const six = { application: 6, build: 1 };
    const fleet = whereSilent(given(...nodesOf(six), held('application', 5, 6)), six, { application: 5 }, LOST_MS);
    for (const node_id of ids('application', 5)) {
      const sweep = { node_id, unhealthy_after_ms: UNHEALTHY_MS, lost_after_ms: LOST_MS };
      expect(await fleet.and(make('node_became_unhealthy', { node_id })).when(sweepNodeCommand, sweep)).toEqual(
        refusal('losses_held', { node_id, pool: 'application', silent: 5 }),
      );
      fleet.silentFor(node_id, 0);
      expect(await fleet.when(sweepNodeCommand, sweep)).toEqual([]);
    }
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([recovered()]);
  });
});

describe('fleet loss release', () => {
  const sizes = { application: 6, build: 1 };
  const holding = (ms = UNHEALTHY_MS) =>
    whereSilent(given(...nodesOf(sizes), held('application', 5, 6)), sizes, { application: 5 }, ms);

  test('held: names those that are silent now', async () => {
    const fleet = holding().silentFor(id('application', 0), 0);
    const silentNow = ids('application', 5).slice(1);
    expect(await fleet.reply(releaseLossesCommand, assess())).toEqual({ node_ids: silentNow });
    expect(await holding().when(releaseLossesCommand, assess())).toEqual([released(ids('application', 5))]);
  });

  test('not held: refused', async () =>
    expect(await given(...nodesOf(sizes)).when(releaseLossesCommand, assess())).toEqual(
      refusal('pool_not_held', { pool: 'application' }),
    ));

  test('repeated: refused, no new event', async () => {
    const fleet = holding();
    await fleet.when(releaseLossesCommand, assess());
    expect(await fleet.when(releaseLossesCommand, assess())).toEqual(refusal('pool_not_held', { pool: 'application' }));
  });

  test('afterwards: not held again for them, and the next sweep gives them up', async () => {
    const fleet = holding(LOST_MS).and(released(ids('application', 5)));
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([]);
    const node_id = id('application', 0);
    const sweep = { node_id, unhealthy_after_ms: UNHEALTHY_MS, lost_after_ms: LOST_MS };
    expect(await fleet.when(sweepNodeCommand, sweep)).toEqual([lost(node_id)]);
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([]);
  });

  test('one of them is heard again: it is a node like any other from then on; repeated: no new event', async () => {
    const fleet = holding()
      .and(released(ids('application', 5)))
      .silentFor(id('application', 0), 0);
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([
      recovered('application', ids('application', 5).slice(1)),
    ]);
    expect(await fleet.when(assessLossesCommand, assess())).toEqual([]);
  });

  test('others fall silent together later: held anew', async () => {
    const eight = { application: 8, build: 1 };
    const fleet = given(...nodesOf(eight), released(ids('application', 4)));
    expect(await whereSilent(fleet, eight, { application: 7 }).when(assessLossesCommand, assess())).toEqual([
      make('node_loss_held', {
        pool: 'application',
        silent_node_ids: ids('application', 7).slice(4),
        pool_size: 4,
      }),
    ]);
  });
});
