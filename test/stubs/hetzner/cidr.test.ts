import { expect, test } from 'vitest';
import { canonicalCidr } from '../../../stubs/hetzner/cidr.ts';

test.each([
  ['0.0.0.0/0', '0.0.0.0/0'],
  ['10.0.1.0/24', '10.0.1.0/24'],
  ['10.0.1.1/32', '10.0.1.1/32'],
  ['::/0', '::/0'],
  ['2001:DB8:0:0::/64', '2001:db8::/64'],
  ['2001:0db8:ff00:0042:0:0:0:8329/128', '2001:db8:ff00:42::8329/128'],
])('%s: returned as %s', (text, cidr) => expect(canonicalCidr(text)).toEqual({ ok: true, cidr }));

test.each([
  ['10.0.1.1/24', '10.0.1.1/24: host bits must be empty'],
  ['2001:db8::1/64', '2001:db8::1/64: host bits must be empty'],
  ['::1/0', '::1/0: host bits must be empty'],
  ['10.0.0.0', '10.0.0.0 is not a valid CIDR'],
  ['10.0.0.0/33', '10.0.0.0/33 is not a valid CIDR'],
  ['10.0.0.0/08', '10.0.0.0/08 is not a valid CIDR'],
  ['10.0.0.0/8/8', '10.0.0.0/8/8 is not a valid CIDR'],
  ['fe80::%eth0/128', 'fe80::%eth0/128 is not a valid CIDR'],
  ['any', 'any is not a valid CIDR'],
])('%s: refused', (text, message) => expect(canonicalCidr(text)).toEqual({ ok: false, message }));
