import { randomUUID } from 'node:crypto';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { HostSightings } from '../../src/gateway/host-sightings.ts';
import { MOST_HOSTS } from '../../src/gateway/hosts-table.ts';
import { startFleet, type TestAgent, type TestFleet } from './support/fleet.ts';

const MANY = 5_000;

let fleet: TestFleet;
let hosts: HostSightings;
beforeAll(async () => {
  fleet = await startFleet();
  hosts = new HostSightings(fleet.database.pool, fleet.operator, 'gateway-test', pino({ level: 'silent' }));
});
afterAll(() => fleet[Symbol.asyncDispose]());

async function fingerprintOf({ nodeId }: TestAgent): Promise<string> {
  const { rows } = await fleet.database.pool.query<{ fingerprint: string }>(
    'SELECT fingerprint FROM fleet.fleet_node_certificates WHERE node_id = $1',
    [nodeId],
  );
  return rows[0]?.fingerprint ?? '';
}

async function hostsOf({ nodeId }: TestAgent): Promise<string[]> {
  const { rows } = await fleet.database.pool.query<{ boot_id: string }>(
    'SELECT boot_id FROM telemetry.node_hosts WHERE node_id = $1 ORDER BY last_seen_at DESC',
    [nodeId],
  );
  return rows.map(({ boot_id }) => boot_id);
}

async function conflictsOf({ nodeId }: TestAgent): Promise<unknown[]> {
  const { rows } = await fleet.database.pool.query<{ boot_ids: unknown }>(
    `SELECT data -> 'boot_ids' AS boot_ids FROM fleet.fleet_events
     WHERE node_id = $1 AND type = 'certificate_conflict_seen' ORDER BY position`,
    [nodeId],
  );
  return rows.map(({ boot_ids }) => boot_ids);
}

/** Each boot id is heard once, a millisecond after the one before it; the last one now. */
const heard = async (agent: TestAgent, bootIds: readonly string[], address = '127.0.0.1', now = Date.now()) => {
  const fingerprint = await fingerprintOf(agent);
  for (const [i, bootId] of bootIds.entries()) {
    hosts.seen({ nodeId: agent.nodeId, bootId, address, fingerprint, at: now - bootIds.length + 1 + i });
  }
};

const bootIds = (count: number) => Array.from({ length: count }, () => randomUUID());

describe('a node that is heard from 5,000 hosts', () => {
  test('within one flush: its newest few are kept, in bounded time, and the conflict of another node is seen', async () => {
    const [noisy, other] = [await fleet.agent(), await fleet.agent()];
    const many = bootIds(MANY);
    const [original, copy] = [randomUUID(), randomUUID()];
    await heard(other, [original], '127.0.0.1', Date.now() - 60_000);
    await hosts.flush();
    await heard(other, [copy], '127.0.0.2', Date.now() - 30_000);
    await hosts.flush();
    const before = performance.now();
    await heard(noisy, many);
    await heard(other, [original]);
    await hosts.flush();
    expect(performance.now() - before).toBeLessThan(2_000);
    expect(await hostsOf(noisy)).toEqual(many.slice(-MOST_HOSTS).toReversed());
    expect(await conflictsOf(other)).toEqual([[original, copy]]);
  });

  test('flush after flush: no more of them are kept', async () => {
    const noisy = await fleet.agent();
    const [first, second] = [bootIds(MOST_HOSTS), bootIds(MOST_HOSTS - 1)];
    await heard(noisy, first);
    await hosts.flush();
    await heard(noisy, second, '127.0.0.1', Date.now() + 1_000);
    await hosts.flush();
    expect(await hostsOf(noisy)).toEqual([...second.toReversed(), first.at(-1)]);
  });

  test('all of them in the table of an earlier version: they go with the next one, in bounded time', async () => {
    const noisy = await fleet.agent();
    const many = bootIds(MANY);
    await fleet.database.pool.query(
      `INSERT INTO telemetry.node_hosts (node_id, boot_id, address, fingerprint, first_seen_at, last_seen_at)
       SELECT $1, boot_id, '127.0.0.1', $2, clock_timestamp() - interval '1 minute', clock_timestamp() - interval '1 second'
       FROM unnest($3::text[]) AS boots (boot_id)`,
      [noisy.nodeId, await fingerprintOf(noisy), many],
    );
    const [newest = ''] = bootIds(1);
    await heard(noisy, [newest]);
    const before = performance.now();
    await hosts.flush();
    expect(performance.now() - before).toBeLessThan(2_000);
    const kept = await hostsOf(noisy);
    expect(kept[0]).toBe(newest);
    expect(kept).toHaveLength(MOST_HOSTS);
  });
});

describe('forget', () => {
  test('a host that was not heard for 8 days goes, one of yesterday stays', async () => {
    const agent = await fleet.agent();
    const [gone, kept] = [randomUUID(), randomUUID()];
    const day = 24 * 3_600_000;
    await heard(agent, [gone], '127.0.0.1', Date.now() - 8 * day);
    await heard(agent, [kept], '127.0.0.1', Date.now() - day);
    await hosts.flush();
    expect(await hostsOf(agent)).toEqual([kept, gone]);
    await hosts.forget();
    expect(await hostsOf(agent)).toEqual([kept]);
  });
});
