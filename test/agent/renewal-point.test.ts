import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { renewalPointMs } from '../../agent/renewal-point.ts';

const HOUR_MS = 3_600_000;
const DAY = { notBeforeMs: 0, notAfterMs: 24 * HOUR_MS };
const fingerprint = fc.stringMatching(/^[0-9a-f]{64}$/);

describe('renewalPointMs', () => {
  test('a certificate of a day: from the sixteenth hour on, four hours and 48 minutes long', () => {
    expect(renewalPointMs({ ...DAY, fingerprintSha256: '0'.repeat(64) })).toBe(16 * HOUR_MS);
    expect(renewalPointMs({ ...DAY, fingerprintSha256: 'f'.repeat(64) })).toBeCloseTo(20.8 * HOUR_MS, -1);
  });

  test('any certificate: within the first three fifths of its last third, and the same each time', () =>
    fc.assert(
      fc.property(
        fc.integer({ min: 0 }),
        fc.integer({ min: 3, max: 1e12 }),
        fingerprint,
        (notBeforeMs, lifetimeMs, hex) => {
          const certificate = { notBeforeMs, notAfterMs: notBeforeMs + lifetimeMs, fingerprintSha256: hex };
          const leftMs = certificate.notAfterMs - renewalPointMs(certificate);
          expect(leftMs).toBeLessThanOrEqual(lifetimeMs / 3 + 1);
          expect(leftMs).toBeGreaterThanOrEqual((lifetimeMs / 3) * 0.4 - 1);
          expect(renewalPointMs(certificate)).toBe(renewalPointMs({ ...certificate }));
        },
      ),
    ));
});
