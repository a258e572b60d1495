import { isIPv4, isIPv6 } from 'node:net';

/** A CIDR in the form the API returns it, or what is wrong with it. */
type CanonicalCidr = { readonly ok: true; readonly cidr: string } | { readonly ok: false; readonly message: string };

/**
 * Brings `address/prefix` into canonical form: IPv6 compressed and in lower case (RFC 5952).
 * Refuses an address without prefix, a prefix out of range and host bits that are set.
 */
export function canonicalCidr(text: string): CanonicalCidr {
  const [address = '', prefixText = '', ...rest] = text.split('/');
  const bits = isIPv4(address) ? 32 : isIPv6(address) && !address.includes('%') ? 128 : 0;
  if (bits === 0 || rest.length > 0 || !/^(0|[1-9]\d{0,2})$/.test(prefixText) || Number(prefixText) > bits) {
    return { ok: false, message: `${text} is not a valid CIDR` };
  }
  const canonical = bits === 32 ? address : canonicalIpv6(address);
  const hostBits = BigInt(bits - Number(prefixText));
  if (addressBits(canonical) & ((1n << hostBits) - 1n))
    return { ok: false, message: `${text}: host bits must be empty` };
  return { ok: true, cidr: `${canonical}/${prefixText}` };
}

/** The WHATWG URL serialiser writes IPv6 as RFC 5952 asks. */
const canonicalIpv6 = (address: string): string => new URL(`http://[${address}]/`).hostname.slice(1, -1);

function addressBits(address: string): bigint {
  if (!address.includes(':')) return address.split('.').reduce((bits, octet) => (bits << 8n) | BigInt(octet), 0n);
  const [head = '', tail = ''] = address.split('::');
  const front = head === '' ? [] : head.split(':');
  const back = tail === '' ? [] : tail.split(':');
  const groups = [...front, ...Array<string>(8 - front.length - back.length).fill('0'), ...back];
  return groups.reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n);
}
