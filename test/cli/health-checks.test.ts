import { describe, expect, test } from 'vitest';
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
  heldLosses: [],
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

describe('silence', () => {
  const detailOf = (check: string, health: Partial<Health>) => {
    const found = checkHealth({ ...HEALTH, ...health }, NOW).find((one) => one.check === check);
    return [found?.status, found?.detail];
  };
  const led = (details: object) => ({
    programs: [
      { program: 's1', kind: 'scheduler', details: { leader: true, ...details }, started_at: NOW, beacon_at: NOW },
    ],
  });

  test('nothing is held: passes', () =>
    expect(detailOf('losses', {})).toEqual(['pass', 'silent nodes are given up by themselves']));

  test('a pool is held: fails, loudly', () =>
    expect(detailOf('losses', { heldLosses: [{ scope: 'application', held_at: NOW }] })).toEqual([
      'fail',
      'HELD: so many nodes of pool application fell silent together that none is given up since 2026-03-01T12:00:00Z: see `pushleft-controller fleet loss status`',
    ]));

  test('frozen by an operator: a warning', () =>
    expect(detailOf('losses', { heldLosses: [{ scope: 'fleet', held_at: NOW }] })).toEqual([
      'warn',
      'FROZEN: no silent node is given up since 2026-03-01T12:00:00Z: see `pushleft-controller fleet loss status`',
    ]));

  test.for([
    ['the clock advances', led({ silence_stands_ms: 2_000, silence_waits_for: ['g1'] }), 'pass', 'counted'],
    [
      'a gateway is not reached',
      led({ silence_stands_ms: 60_000, silence_waits_for: ['g1'] }),
      'warn',
      'not counted for 1m, so no node is given up: g1 is not reached by anybody',
    ],
    [
      'no gateway',
      led({ silence_stands_ms: 60_000, silence_waits_for: [] }),
      'warn',
      'not counted for 1m, so no node is given up: there is no gateway',
    ],
    ['no leader', {}, 'warn', 'not counted: no scheduler leads'],
  ] as const)('%s: %s', ([, health, status, detail]) => expect(detailOf('silence', health)).toEqual([status, detail]));
});

describe('PKI of live gateways', () => {
  const DAY_MS = 86_400_000;
  const CA = 'a'.repeat(64);
  const iso = (ms: number) => new Date(ms).toISOString();
  const PKI = {
    trusted_ca_sha256s: [CA],
    issuer_ca_sha256: CA,
    previous_issuer_ca_sha256: null,
    serving: {
      fingerprint_sha256: 'c'.repeat(64),
      issuer_ca_sha256: CA,
      not_before: iso(NOW - 100 * DAY_MS),
      not_after: iso(NOW + 297 * DAY_MS),
    },
    loaded_at: iso(NOW),
    error: null,
  };
  const endingIn = (ms: number) => ({ ...PKI, serving: { ...PKI.serving, not_after: iso(NOW + ms) } });

  /** The finding when gateways g1, g2, … say this of their files. */
  function findingOf(...pkis: object[]) {
    const programs = pkis.map((pki, i) => ({
      program: `g${i + 1}`,
      kind: 'gateway',
      details: { pki },
      started_at: NOW,
      beacon_at: NOW,
    }));
    const found = checkHealth({ ...HEALTH, programs }, NOW).find(({ check }) => check === 'gateway_pki');
    return [found?.status, found?.detail];
  }

  test('two with the same trust, in whatever order: passes', () => {
    const both = [CA, 'b'.repeat(64)];
    expect(findingOf({ ...PKI, trusted_ca_sha256s: both }, { ...PKI, trusted_ca_sha256s: both.toReversed() })).toEqual([
      'pass',
      '2 serving, with the same trust',
    ]);
  });

  test('one cannot use its files: fails with code and reason', () => {
    const error = { code: 'pki_ca_not_in_bundle', message: 'bundle.pem: lacks it', since: iso(NOW) };
    expect(findingOf(PKI, { ...PKI, error })).toEqual([
      'fail',
      expect.stringMatching(
        /^g2 goes on with its last good PKI files since .*\(pki_ca_not_in_bundle\): bundle\.pem: lacks it$/,
      ),
    ]);
  });

  test.for([
    ['29 days', 29 * DAY_MS, 'warn', /^the certificate of g1 ends at /],
    ['6 days', 6 * DAY_MS, 'fail', /^the certificate of g1 ends at /],
    ['nothing', -1, 'fail', /^the certificate of g1 expired at .*reissue-gateway`$/],
  ] as const)('%s left of the serving certificate', ([, leftMs, status, detail]) =>
    expect(findingOf(endingIn(leftMs))).toEqual([status, expect.stringMatching(detail)]),
  );

  test('they trust different CAs: a warning that says which', () =>
    expect(findingOf(PKI, { ...PKI, trusted_ca_sha256s: [CA, 'b'.repeat(64)] })).toEqual([
      'warn',
      'gateways trust different CAs: g1 aaaaaaaaaaaa, g2 aaaaaaaaaaaa bbbbbbbbbbbb; run `fleet ca sync` where files are older',
    ]));

  test('a gateway of an older version: a warning, since nothing is known', () =>
    expect(findingOf({ other: true })).toEqual(['warn', 'no live gateway tells which CAs it trusts']));
});
