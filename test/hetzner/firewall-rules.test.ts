import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseOperatorCidrs, poolRules, rulesDigest, sameRules } from '../../src/hetzner/firewall-rules.ts';

const OFFICE = '203.0.113.0/24';
const openings = (rules: ReturnType<typeof poolRules>) =>
  rules.map(({ direction, protocol, port, source_ips }) => [direction, protocol, port, source_ips]);
const ssh = ['in', 'tcp', '22', [OFFICE]];

describe('rules of a pool', () => {
  test.each(['build', 'database'] as const)('%s: SSH from operators, nothing else', (pool) =>
    expect(openings(poolRules(pool, [OFFICE]))).toEqual([ssh]),
  );
  test('application: HTTP and HTTPS from anywhere too', () =>
    expect(openings(poolRules('application', [OFFICE]))).toEqual([
      ssh,
      ['in', 'tcp', '80', ['0.0.0.0/0', '::/0']],
      ['in', 'tcp', '443', ['0.0.0.0/0', '::/0']],
    ]));
  test('150 operator ranges: two SSH rules of at most 100 sources', () => {
    const cidrs = Array.from({ length: 150 }, (_, index) => `10.0.${index}.0/24`);
    expect(poolRules('build', cidrs).map((rule) => rule.source_ips.length)).toEqual([100, 50]);
  });
});

describe('operator CIDRs', () => {
  test('two notations of one range: one canonical range, sorted', () =>
    expect(parseOperatorCidrs([' 2001:DB8::/32', OFFICE, '2001:db8:0::/32'])).toEqual({
      ok: true,
      value: ['2001:db8::/32', OFFICE],
    }));
  test('none: refused', () =>
    expect(parseOperatorCidrs([])).toMatchObject({ ok: false, refusal: { code: 'cidrs_missing' } }));
  test('several bad ones: all named, with suggestions', () =>
    expect(parseOperatorCidrs(['203.0.113.9/24', OFFICE, 'office'])).toEqual({
      ok: false,
      refusal: {
        code: 'cidr_invalid',
        message: 'not a CIDR: "203.0.113.9/24" (did you mean 203.0.113.0/24?), "office"',
      },
    }));
  test('4,801 ranges: refused', () => {
    const cidrs = Array.from({ length: 4_801 }, (_, index) => `10.${index >> 8}.${index & 255}.0/24`);
    expect(parseOperatorCidrs(cidrs)).toMatchObject({ ok: false, refusal: { code: 'cidrs_too_many' } });
  });
});

describe('equality of rule sets', () => {
  const wanted = poolRules('application', ['2001:db8::/32', OFFICE]);
  const asGivenBack = wanted.map((rule) => ({
    ...rule,
    source_ips: [...rule.source_ips],
    destination_ips: [],
    description: null,
  }));

  test('other order, other notation, split rules, a port range of one: equal', () => {
    const [first, ...others] = asGivenBack;
    const rewritten = (first?.source_ips ?? []).map((ip) => ({
      ...asGivenBack[0],
      direction: 'in' as const,
      protocol: 'tcp' as const,
      port: '22-22',
      destination_ips: [],
      source_ips: [ip.toUpperCase()],
    }));
    expect(sameRules([...others.toReversed(), ...rewritten], wanted)).toBe(true);
  });
  test('one source more, one rule less, another protocol, an outbound rule: different', () => {
    const [first, ...others] = asGivenBack;
    if (first === undefined) expect.unreachable();
    expect(sameRules([{ ...first, source_ips: [...first.source_ips, '10.0.0.0/8'] }, ...others], wanted)).toBe(false);
    expect(sameRules(others, wanted)).toBe(false);
    expect(sameRules([{ ...first, protocol: 'udp' }, ...others], wanted)).toBe(false);
    expect(
      sameRules(
        [
          ...asGivenBack,
          { direction: 'out', protocol: 'tcp', port: '25', source_ips: [], destination_ips: ['0.0.0.0/0'] },
        ],
        wanted,
      ),
    ).toBe(false);
  });
  test('no rules: equal to no rules only', () => {
    expect(sameRules([], [])).toBe(true);
    expect(sameRules([], wanted)).toBe(false);
  });
  test('any shuffle: the same digest', () => {
    fc.assert(
      fc.property(fc.shuffledSubarray([...wanted], { minLength: wanted.length }), (shuffled) => {
        expect(rulesDigest(shuffled)).toBe(rulesDigest(wanted));
      }),
    );
  });
});
