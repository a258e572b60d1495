import { expect, test } from 'vitest';
import { checkHealth } from '../../cli/health-checks.ts';
import type { Health } from '../../src/read/health.ts';

const NOW = Date.UTC(2026, 2, 1, 12);

/** What the database tells when the log's last event is `aheadMs` in the future. */
function clockOfLog(aheadMs: number) {
  const health: Health = {
    databaseVersion: '17',
    databaseUser: 'ada',
    roundTripMs: 1,
    head: { position: 7, at: NOW + aheadMs },
    projectedPosition: 7,
    definitionMatches: true,
    lock: [],
    programs: [],
    clockAheadOfHostMs: 0,
    clockAheadOfLogMs: -aheadMs,
  };
  return checkHealth(health, NOW).find(({ check }) => check === 'clock_log');
}

test('the log is ahead of the clock by more than certificates bear: fails, says until when', () =>
  expect(clockOfLog(3_600_000)).toEqual({
    check: 'clock_log',
    status: 'fail',
    detail: expect.stringMatching(/: no certificate is issued until 2026-03-01T12:59:00(\.000)?Z$/),
  }));

test('the log is ahead by a minute: a warning, no end', () => {
  const check = clockOfLog(60_000);
  expect([check?.status, check?.detail.includes('until')]).toEqual(['warn', false]);
});
