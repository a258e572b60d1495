import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalCidr } from '../../src/hetzner/cidr.ts';

describe('canonicalCidr', () => {
  test.each([
    ['203.0.113.0/24', '203.0.113.0/24'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['198.51.100.7/32', '198.51.100.7/32'],
    ['2001:DB8:0:0::/32', '2001:db8::/32'],
    ['::/0', '::/0'],
    ['2001:db8:0:0:1:0:0:1/128', '2001:db8::1:0:0:1/128'],
    ['::ffff:192.0.2.1/128', '::ffff:c000:201/128'],
  ])('%s: canonical', (text, cidr) => expect(canonicalCidr(text)).toEqual({ ok: true, cidr }));

  test.each([
    ['203.0.113.7/24', '203.0.113.0/24'],
    ['203.0.113.7', '203.0.113.7/32'],
    ['2001:db8::1/64', '2001:db8::/64'],
    ['2001:DB8::1', '2001:db8::1/128'],
  ])('%s: refused, suggests %s', (text, suggestion) => expect(canonicalCidr(text)).toEqual({ ok: false, suggestion }));

  test.each([
    '',
    '/',
    'office',
    '10.0.0.0/33',
    '10.0.0/8',
    '010.0.0.0/8',
    '10.0.0.0/08',
    '10.0.0.0/8/8',
    '10.0.0.0/-1',
    'fe80::1%eth0/64',
    '::/129',
    '10.0.0.0/8 ',
    '10.0.0.0/ 8',
  ])('"%s": refused without a suggestion', (text) =>
    expect(canonicalCidr(text)).toEqual({ ok: false, suggestion: null }),
  );

  test('any range, however it is written: what is suggested or returned is canonical, and stays as it is', () => {
    const address = fc.oneof(fc.ipV4(), fc.ipV6());
    fc.assert(
      fc.property(address, fc.nat(128), (ip, length) => {
        const check = canonicalCidr(`${ip}/${ip.includes(':') ? length : length % 33}`);
        const cidr = check.ok ? check.cidr : check.suggestion;
        expect(cidr === null ? undefined : canonicalCidr(cidr)).toEqual({ ok: true, cidr });
      }),
    );
  });
});
