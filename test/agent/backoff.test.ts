import { describe, expect, test } from 'vitest';
import { backoffMs } from '../../agent/backoff.ts';

const pauses = (random: number) =>
  [1, 2, 3, 4, 5, 6, 1_000].map((failures) => backoffMs(failures, { random: () => random }));

describe('backoffMs', () => {
  test('no luck: half of 1 s, doubling to half of 20 s', () =>
    expect(pauses(0)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 10_000, 10_000]));
  test('all luck: 1 s doubling to 20 s and never beyond', () =>
    expect(pauses(1)).toEqual([1_000, 2_000, 4_000, 8_000, 16_000, 20_000, 20_000]));
});
