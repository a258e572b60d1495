import { expect, test } from 'vitest';
import { checkHealth } from '../../cli/health-checks.ts';
import type { Health } from '../../src/read/health.ts';

const NOW = Date.UTC(2026, 2, 1, 12);

const HEALTH: Health = {
  databaseVersion: '17',
  databaseUser: 'ada',
  roundTripMs: 1,
  head: { position: 7, at: NOW },
  projectedPosition: 7,
  definitionMatches: true,
  lock: [],
  programs: [],
  clockAheadOfHostMs: 0,
  clockAheadOfLogMs: 0,
};

/** What the database tells when the log's last event is `aheadMs` in the future. */
function clockOfLog(aheadMs: number) {
  const health = { ...HEALTH, head: { position: 7, at: NOW + aheadMs }, clockAheadOfLogMs: -aheadMs };
  return checkHealth(health, NOW).find(({ check }) => check === 'clock_log');
}

/** The status of gateways and scheduler when one of each, with such details, wrote its beacon `ageMs` ago. */
function programsOf(ageMs: number, details: object) {
  const program = { started_at: NOW - 60_000, beacon_at: NOW - ageMs };
  const programs = (['gateway', 'scheduler'] as const).map((kind) => ({ ...program, program: kind, kind, details }));
  return checkHealth({ ...HEALTH, programs }, NOW)
    .filter(({ check }) => check === 'gateways' || check === 'scheduler')
    .map(({ status }) => status);
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

test.for([
  ['beacons of 5 s ago: alive', 5_000, 2_000, 'pass'],
  ['beacons of more than 5 s ago: dead', 5_001, 1_000, 'fail'],
  ['beacons of three long intervals ago: alive', 30_000, 10_000, 'pass'],
  ['beacons of more than three long intervals ago: dead', 30_001, 10_000, 'fail'],
] as const)('%s', ([, ageMs, intervalMs, status]) =>
  expect(programsOf(ageMs, { leader: true, interval_ms: intervalMs })).toEqual([status, status]),
);
