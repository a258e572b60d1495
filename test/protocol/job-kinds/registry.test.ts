import { describe, expect, test } from 'vitest';
import { DOCTOR_CHECKS } from '../../../src/protocol/job-kinds/diagnose-host.ts';
import { isJobKind, jobKinds, parseJobPayload, parseJobResult } from '../../../src/protocol/job-kinds/registry.ts';
import { BODY_MAX_BYTES } from '../../../src/protocol/limits.ts';

const finding = { check: 'clock', status: 'pass', detail: 'agrees', duration_ms: 3 };

describe('the registry of kinds', () => {
  test('names: every one is known, nothing inherited is', () => {
    expect(jobKinds.every(isJobKind)).toBe(true);
    expect(['toString', '__proto__', 'constructor', 'mine_coins'].filter(isJobKind)).toEqual([]);
  });
});

describe('diagnose_host', () => {
  test.each([{}, { checks: [] }, { checks: ['clock', 'dns'] }])('payload %j: accepted', (payload) =>
    expect(parseJobPayload('diagnose_host', payload)).toEqual({ ok: true, value: payload }),
  );

  test.each([
    [null, 'value: expected Object'],
    [{ checks: 'all' }, 'checks: expected Array'],
    [{ shell: 'rm' }, 'shell: expected never'],
  ])('payload %j: refused, and says where', (payload, problem) =>
    expect(parseJobPayload('diagnose_host', payload)).toEqual({ ok: false, problem }),
  );

  test('a problem never quotes the value', () =>
    expect(JSON.stringify(parseJobPayload('diagnose_host', { checks: ['s3cret'] }))).not.toContain('s3cret'));

  test('a report: accepted', () => {
    const report = { checks: [finding], duration_ms: 12 };
    expect(parseJobResult('diagnose_host', report)).toEqual({ ok: true, value: report });
  });

  test.each([
    { checks: [{ ...finding, detail: 'x'.repeat(257) }], duration_ms: 12 },
    { checks: [{ ...finding, status: 'maybe' }], duration_ms: 12 },
    { checks: [{ ...finding, extra: 1 }], duration_ms: 12 },
    { checks: Array.from({ length: DOCTOR_CHECKS.length + 1 }, () => finding), duration_ms: 12 },
    { checks: [] },
  ])('a report out of bounds (%#): refused', (report) =>
    expect(parseJobResult('diagnose_host', report).ok).toBe(false),
  );

  test('the largest report fits a body', () => {
    const widest = { ...finding, check: 'bridge_netfilter', detail: '￿'.repeat(256), duration_ms: 600_000 };
    const report = { checks: DOCTOR_CHECKS.map(() => widest), duration_ms: 600_000 };
    expect(parseJobResult('diagnose_host', report).ok).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(report)) * 2).toBeLessThan(BODY_MAX_BYTES);
  });
});
