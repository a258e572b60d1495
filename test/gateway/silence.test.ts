import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rebuild } from '../../src/projector/rebuild.ts';
import { PASS_MS, WatchedFleet } from './support/watched-fleet.ts';

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const LOST_AFTER_MS = 300 * SECOND;
/** What it may take beyond the threshold until a dead node is lost. */
const LATE_MS = 10 * SECOND;

let watched: WatchedFleet;
beforeAll(async () => {
  watched = await WatchedFleet.start();
});
afterAll(() => watched[Symbol.asyncDispose]());

const query = (text: string) => watched.fleet.database.pool.query(text);

describe('three agents that live, six minutes in which nobody can be heard', () => {
  test('its listener is dead, the process lives: nothing happens to any node', async () => {
    await watched.agents(3);
    await watched.entrance.close();
    await watched.passFor(6 * MINUTE);
    await watched.entrance.open();
    await watched.passFor(MINUTE);
    expect(await watched.transitions()).toEqual([]);
  });

  test('it writes nothing of what it hears: it sends agents away, and nothing happens to any node', async () => {
    const agents = await watched.agents(3);
    watched.writes = false;
    await watched.passFor(6 * MINUTE);
    expect(agents.map(({ answered }) => answered)).toEqual([503, 503, 503]);
    watched.writes = true;
    await watched.passFor(MINUTE);
    expect(agents.map(({ answered }) => answered)).toEqual([200, 200, 200]);
    expect(await watched.transitions()).toEqual([]);
  });

  test('its flush waits for a lock: nothing happens to any node', async () => {
    await watched.agents(3);
    const release = await watched.hold(`SELECT 1 FROM telemetry.programs WHERE kind = 'gateway' FOR UPDATE`);
    watched.writes = false;
    const writing = watched.write();
    await watched.passFor(6 * MINUTE);
    await release();
    await writing;
    watched.writes = true;
    await watched.passFor(MINUTE);
    expect(await watched.transitions()).toEqual([]);
  });

  test('no scheduler leads: nothing happens to any node', async () => {
    await watched.agents(3);
    await watched.withoutLeader(6 * MINUTE);
    await watched.lead();
    await watched.passFor(MINUTE);
    expect(await watched.transitions()).toEqual([]);
  });
});

describe('the clock jumps', () => {
  /** As if the database's clock had been put forward by so much, or back: by it, everything that was written is older, or younger. */
  async function jump(by: string): Promise<void> {
    await query(`UPDATE telemetry.node_liveness SET last_seen_at = last_seen_at - interval '${by}'`);
    await query(`UPDATE telemetry.programs SET beacon_at = beacon_at - interval '${by}'`);
  }

  test.each(['1 day', '-1 day'])('by %s, while agents live: nothing happens to any node', async (by) => {
    await watched.agents(3);
    await jump(by);
    await watched.passFor(6 * MINUTE);
    expect(await watched.transitions()).toEqual([]);
  });

  test.each(['1 day', '-1 day'])('by %s, then one dies: lost within the threshold and ten seconds', async (by) => {
    const [victim] = await watched.agents(3);
    if (victim === undefined) throw new Error('there is no agent');
    await jump(by);
    victim.alive = false;
    const tookMs = await watched.passFor(2 * LOST_AFTER_MS, () => watched.isLost(victim));
    expect(tookMs).toBeGreaterThanOrEqual(LOST_AFTER_MS);
    expect(tookMs).toBeLessThanOrEqual(LOST_AFTER_MS + LATE_MS);
    expect(await watched.transitions()).toEqual([
      ['node_became_unhealthy', victim.nodeId],
      ['node_lost', victim.nodeId],
    ]);
  });
});

describe('one agent is dead, and something is restarted in the middle of its silence', () => {
  /** The events of a silence that is interrupted after 200 s, and how long it took in all until the node was lost. */
  async function interruptedBy(interrupt: () => Promise<void>) {
    const [victim] = await watched.agents(3);
    if (victim === undefined) throw new Error('there is no agent');
    victim.alive = false;
    const beforeMs = await watched.passFor(200 * SECOND);
    await interrupt();
    const afterMs = await watched.passFor(2 * LOST_AFTER_MS, () => watched.isLost(victim));
    expect(await watched.transitions()).toEqual([
      ['node_became_unhealthy', victim.nodeId],
      ['node_lost', victim.nodeId],
    ]);
    return { beforeMs, afterMs, tookMs: beforeMs + afterMs };
  }

  test('another scheduler leads: what was counted counts', async () => {
    const { tookMs } = await interruptedBy(() => watched.lead());
    expect(tookMs).toBeGreaterThanOrEqual(LOST_AFTER_MS);
    expect(tookMs).toBeLessThanOrEqual(LOST_AFTER_MS + 2 * LATE_MS);
  });

  test('the tables are built anew: what was counted counts', async () => {
    const { tookMs } = await interruptedBy(async () => void (await rebuild(watched.fleet.database.pool)));
    expect(tookMs).toBeLessThanOrEqual(LOST_AFTER_MS + LATE_MS);
  });

  test('telemetry is lost: it begins anew, with the next leader', async () => {
    const { afterMs } = await interruptedBy(async () => {
      await query('TRUNCATE telemetry.node_liveness, telemetry.scheduler, telemetry.programs');
      await watched.lead();
    });
    expect(afterMs).toBeGreaterThanOrEqual(LOST_AFTER_MS);
    expect(afterMs).toBeLessThanOrEqual(LOST_AFTER_MS + 2 * LATE_MS);
  });

  test('the clock is restored from when the node was still heard: it begins anew', async () => {
    const { afterMs } = await interruptedBy(async () => {
      await query('UPDATE telemetry.scheduler SET heard_ms = heard_ms - 1000000');
    });
    expect(afterMs).toBeGreaterThanOrEqual(LOST_AFTER_MS - PASS_MS);
  });
});

test('unhealthy, and asks for work: well again, and served by the same request', async () => {
  const [victim] = await watched.agents(3);
  if (victim === undefined) throw new Error('there is no agent');
  victim.alive = false;
  await watched.passFor(100 * SECOND);
  victim.alive = true;
  await watched.pass();
  expect(victim.answered).toBe(200);
  await watched.passFor(6 * MINUTE);
  expect(await watched.transitions()).toEqual([
    ['node_became_unhealthy', victim.nodeId],
    ['node_recovered', victim.nodeId],
  ]);
});

test('tables are built anew again and again while agents live: nothing happens to any node', async () => {
  await watched.agents(3);
  const stop = new AbortController();
  const rebuilding = (async () => {
    while (!stop.signal.aborted) await rebuild(watched.fleet.database.pool);
  })();
  await watched.passFor(2 * MINUTE);
  stop.abort();
  await rebuilding;
  expect(await watched.transitions()).toEqual([]);
});

// The last one: the gateway by which agents enrol does not come back.
test('the gateway is down for six minutes: nothing happens to any node', async () => {
  await watched.agents(3);
  await watched.fleet.gateway.close();
  await watched.passFor(6 * MINUTE);
  watched.entrance.leadTo((await watched.fleet.startGateway()).agentUrl);
  await watched.passFor(MINUTE);
  expect(await watched.transitions()).toEqual([]);
});
