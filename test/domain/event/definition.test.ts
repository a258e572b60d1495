import * as v from 'valibot';
import { describe, expect, test } from 'vitest';
import { type EventDefinition, upcast } from '../../../src/domain/event/definition.ts';

/** Made up: first a size in GB, then in MB, then with a unit of its own. */
const resized: EventDefinition = {
  version: 3,
  data: v.strictObject({ size: v.number(), unit: v.literal('MB') }),
  earlier: {
    1: {
      data: v.strictObject({ gigabytes: v.number() }),
      upcast: ({ gigabytes }: { gigabytes: number }) => ({ megabytes: gigabytes * 1024 }),
    },
    2: {
      data: v.strictObject({ megabytes: v.number() }),
      upcast: ({ megabytes }: { megabytes: number }) => ({ size: megabytes, unit: 'MB' }),
    },
  },
};

describe('data of an event', () => {
  test('version 1 of 3: brought on through version 2', () =>
    expect(upcast(resized, 1, { gigabytes: 2 })).toEqual({ size: 2048, unit: 'MB' }));

  test('version 2 of 3: brought on by one step', () =>
    expect(upcast(resized, 2, { megabytes: 5 })).toEqual({ size: 5, unit: 'MB' }));

  test("today's version: as it was written", () =>
    expect(upcast(resized, 3, { size: 5, unit: 'MB' })).toEqual({ size: 5, unit: 'MB' }));

  test('newer than this program: refused', () =>
    expect(() => upcast(resized, 4, {})).toThrow('version 4 is newer than this program'));

  test('a version that was never written: refused', () =>
    expect(() => upcast(resized, 0, {})).toThrow('version 0 is unknown'));

  test('not of the version that it claims: refused', () =>
    expect(() => upcast(resized, 1, { megabytes: 5 })).toThrow(
      'Invalid key: Expected "gigabytes" but received undefined',
    ));
});
