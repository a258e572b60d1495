import { describe, expect, test } from 'vitest';
import { backoffMs, rateLimitDelayMs } from '../../src/hetzner/retry-policy.ts';

const NOW = 1_800_000_000_000;
const least = () => 0;
const most = () => 1;
const delay = (headers: Record<string, string>, random = least, failures = 1) =>
  rateLimitDelayMs(new Headers(headers), { now: NOW, failures, random });

describe('delay after a 429', () => {
  test('Retry-After in seconds: waited for', () => expect(delay({ 'retry-after': '7' })).toBe(7_000));
  test('Retry-After as a date: waited for', () =>
    expect(delay({ 'retry-after': new Date(NOW + 3_000).toUTCString() })).toBe(3_000));
  test('Retry-After beside a reset: Retry-After counts', () =>
    expect(delay({ 'retry-after': '2', 'ratelimit-remaining': '0', 'ratelimit-reset': String(NOW / 1000 + 9) })).toBe(
      2_000,
    ));
  test('nothing remains and full recovery is an hour away: one refill', () =>
    expect(delay({ 'ratelimit-remaining': '0', 'ratelimit-reset': String(NOW / 1000 + 3_600) })).toBe(1_000));
  test('reset in the past (skewed clock): a short wait, not none', () =>
    expect(delay({ 'ratelimit-remaining': '0', 'ratelimit-reset': String(NOW / 1000 - 60) })).toBe(200));
  test('something remains: reset is not asked, at least a refill', () =>
    expect(delay({ 'ratelimit-remaining': '5', 'ratelimit-reset': String(NOW / 1000 + 3_600) })).toBe(1_000));
  test('no headers: at least a refill, growing', () => {
    expect(delay({})).toBe(1_000);
    expect(delay({}, least, 4)).toBe(2_000);
  });
  test('unreadable Retry-After: as if absent', () => expect(delay({ 'retry-after': 'soon' })).toBe(1_000));
  test('jitter: lengthens by at most a quarter', () => expect(delay({ 'retry-after': '4' }, most)).toBe(5_000));
});

describe('back-off after a failure', () => {
  test('first to sixth, least jitter: half of the doubling ceiling, which ends at 8 s', () =>
    expect([1, 2, 3, 4, 5, 6].map((failures) => backoffMs(failures, least))).toEqual([
      250, 500, 1_000, 2_000, 4_000, 4_000,
    ]));
  test('most jitter: the whole ceiling', () => expect(backoffMs(2, most)).toBe(1_000));
});
