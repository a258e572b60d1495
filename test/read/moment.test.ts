import { describe, expect, test } from 'vitest';
import { durationMs, parseMoment } from '../../src/read/moment.ts';

const NOW = Date.parse('2026-03-01T12:00:00Z');

describe('a moment as operators write it', () => {
  test.for([
    ['412', { position: 412 }],
    ['0', { position: 0 }],
    ['10m', { at: NOW - 600_000 }],
    ['10m ago', { at: NOW - 600_000 }],
    ['1h30m', { at: NOW - 5_400_000 }],
    ['2026-02-28', { at: Date.parse('2026-02-28T00:00:00Z') }],
    ['2026-02-28T23:00Z', { at: Date.parse('2026-02-28T23:00:00Z') }],
    ['2026-02-28T23:00:01.5+01:00', { at: Date.parse('2026-02-28T22:00:01.500Z') }],
  ] as const)('%s: is read', ([text, moment]) => {
    expect(parseMoment(text, NOW)).toEqual(moment);
  });

  test.for([
    '',
    'yesterday',
    '-5',
    '1.5',
    '10x',
    '99999999999999999',
    '2026-02-28T23:00',
    '2026-13-01',
    '2026-02-28 23:00Z',
  ])('%s: is refused', (text) => {
    expect(parseMoment(text, NOW)).toBeUndefined();
  });

  test('a duration without a unit: is none', () => {
    expect([durationMs('90'), durationMs('90s'), durationMs('1d 2h')]).toEqual([undefined, 90_000, 93_600_000]);
  });
});
