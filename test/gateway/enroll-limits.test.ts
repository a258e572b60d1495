import { createConnection } from 'node:net';
import { describe, expect, test } from 'vitest';
import { addressKey } from '../../src/gateway/address-key.ts';
import { EnrollLimits, type EnrollRates } from '../../src/gateway/enroll-limits.ts';
import { TokenBuckets } from '../../src/gateway/token-bucket.ts';
import { waitFor } from '../support/wait-for.ts';
import { NO_LIMITS, startFleet, type TestFleet } from './support/fleet.ts';

/** A node id that nobody awaits. */
const STRANGER = '10000000-0000-4000-8000-0000000000ff';
const once = { perSecond: 0, burst: 1 };

describe('addressKey', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::9', '2001:db8:1:2'],
    ['2001:DB8:0001:0002::', '2001:db8:1:2'],
    ['2001:db8::1', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
  ])('%s counts as %s', (address, key) => expect(addressKey(address)).toBe(key));
});

describe('token buckets', () => {
  test('empty: refilled with time, never above the burst', () => {
    let now = 0;
    const buckets = new TokenBuckets({ perSecond: 2, burst: 3 }, 10, () => now);
    const take = (times: number) => Array.from({ length: times }, () => buckets.take('a'));
    expect(take(4)).toEqual([true, true, true, false]);
    now = 500;
    expect(take(2)).toEqual([true, false]);
    now = 60_000;
    expect(take(4)).toEqual([true, true, true, false]);
  });

  test('more keys than fit: the one touched longest ago is forgotten', () => {
    const buckets = new TokenBuckets(once, 2, () => 0);
    expect([buckets.take('a'), buckets.take('b'), buckets.take('a'), buckets.take('c')]).toEqual([
      true,
      true,
      false,
      true,
    ]);
    expect([buckets.take('a'), buckets.size]).toEqual([false, 2]);
    expect(buckets.take('b')).toBe(true);
  });
});

describe('enrolment limits', () => {
  const rates = (changes: Partial<EnrollRates>) => ({ ...NO_LIMITS, ...changes });

  test('one address used up: the others of its /64 too, another one not', () => {
    const limits = new EnrollLimits(
      rates({ perAddress: once }),
      () => false,
      () => 0,
    );
    expect(limits.admitsAddress('2001:db8::1')).toBe(true);
    expect(limits.admitsAddress('2001:db8::2')).toBe(false);
    expect(limits.admitsAddress('2001:db8:0:1::1')).toBe(true);
  });

  test('everybody together used up: strangers wait, awaited nodes have the reserve', () => {
    const limits = new EnrollLimits(
      rates({ shared: once }),
      (nodeId) => nodeId === 'awaited',
      () => 0,
    );
    expect(limits.admitsNode('stranger')).toBe(true);
    expect(limits.admitsNode('stranger')).toBe(false);
    expect(limits.admitsNode('awaited')).toBe(true);
  });

  test('one awaited node beyond its share: the reserve is left to the others', () => {
    const limits = new EnrollLimits(
      rates({ shared: { perSecond: 0, burst: 0 }, reserve: { perSecond: 0, burst: 2 }, perAwaitedNode: once }),
      () => true,
      () => 0,
    );
    expect([limits.admitsNode('a'), limits.admitsNode('a'), limits.admitsNode('b')]).toEqual([true, false, true]);
  });
});

describe('the listener', () => {
  test('address used up: 429 with Retry-After, and the database is not asked', async () => {
    await using fleet = await startFleet({}, { ...NO_LIMITS, perAddress: { perSecond: 0, burst: 1 } });
    const node = await fleet.provision();
    expect((await fleet.enroll({ ...node, secret: 'ab'.repeat(32) })).status).toBe(401);
    const sessions = await statements(fleet);
    const answered = await fleet.enroll(node);
    expect([answered.status, answered.body, answered.headers['retry-after']]).toEqual([
      429,
      { error: 'rate_limited', message: 'Too many requests.' },
      '1',
    ]);
    expect(await statements(fleet)).toEqual(sessions);
  });

  test('flood of strangers: an awaited node still enrols', async () => {
    const shared = { perSecond: 0, burst: 5 };
    await using fleet = await startFleet({}, { ...NO_LIMITS, shared });
    const node = await fleet.provision();
    await waitFor(
      async () => {
        const stranger = await fleet.enroll({ nodeId: STRANGER, secret: 'ab'.repeat(32) });
        return stranger.status === 429;
      },
      { what: 'the shared limit is used up' },
    );
    await waitFor(async () => (await fleet.enroll(node)).status === 200, { what: 'the awaited node is known' });
    expect((await fleet.enroll({ nodeId: STRANGER, secret: 'ab'.repeat(32) })).status).toBe(429);
  });

  test('connections that say nothing: closed, and others are served meanwhile', async () => {
    await using fleet = await startFleet();
    const port = Number(new URL(fleet.gateway.enrollUrl).port);
    const silent = Array.from({ length: 50 }, () => createConnection({ host: '127.0.0.1', port }));
    let closed = 0;
    for (const socket of silent) socket.on('close', () => void (closed += 1)).on('error', () => undefined);
    expect((await fleet.enroll(await fleet.provision())).status).toBe(200);
    await waitFor(() => closed === 50, { what: 'the silent connections are closed', deadlineMs: 10_000 });
  });
});

/** How many decisions have been asked for: the transactor's session names the last statement it began. */
async function statements(fleet: TestFleet): Promise<unknown[]> {
  const { rows } = await fleet.database.pool.query(
    `SELECT pid, query_start FROM pg_stat_activity
     WHERE datname = current_database() AND application_name LIKE 'pushleft gateway%' AND query = 'COMMIT' ORDER BY pid`,
  );
  return rows;
}
