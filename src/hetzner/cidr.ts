import { isIPv4, isIPv6 } from 'node:net';

/** A range in canonical notation, or what is wrong with it, with the canonical notation where one can be meant. */
export type CidrCheck =
  | { readonly ok: true; readonly cidr: string }
  | { readonly ok: false; readonly suggestion: string | null };

/**
 * Reads one CIDR and returns its canonical form: IPv4 dotted, IPv6 as RFC 5952 writes it. Refuses host bits and a bare address rather
 * than guess a width for them, and suggests what was probably meant.
 */
export function canonicalCidr(text: string): CidrCheck {
  const [address = '', prefix, ...rest] = text.split('/');
  const parsed = parseAddress(address);
  if (parsed === undefined || rest.length > 0) return { ok: false, suggestion: null };
  if (prefix === undefined) return { ok: false, suggestion: `${formatAddress(parsed)}/${parsed.width}` };
  if (!/^(?:0|[1-9]\d{0,2})$/.test(prefix) || Number(prefix) > parsed.width) return { ok: false, suggestion: null };
  const hostBits = BigInt(parsed.width - Number(prefix));
  const network = { ...parsed, bits: (parsed.bits >> hostBits) << hostBits };
  const cidr = `${formatAddress(network)}/${prefix}`;
  return network.bits === parsed.bits ? { ok: true, cidr } : { ok: false, suggestion: cidr };
}

interface Address {
  readonly width: 32 | 128;
  readonly bits: bigint;
}

function parseAddress(text: string): Address | undefined {
  if (isIPv4(text))
    return { width: 32, bits: text.split('.').reduce((bits, octet) => (bits << 8n) | BigInt(octet), 0n) };
  // A zone (fe80::1%eth0) has no meaning to a firewall elsewhere.
  if (!isIPv6(text) || text.includes('%')) return undefined;
  const [head = [], tail = []] = canonicalIpv6(text)
    .split('::')
    .map((half) => half.split(':').filter((group) => group !== ''));
  const zeros = Array.from({ length: 8 - head.length - tail.length }, () => '0');
  return {
    width: 128,
    bits: [...head, ...zeros, ...tail].reduce((bits, group) => (bits << 16n) | BigInt(`0x${group}`), 0n),
  };
}

function formatAddress({ width, bits }: Address): string {
  const size = width === 32 ? 8n : 16n;
  const groups = Array.from({ length: width / Number(size) }, (_, index) => {
    const shift = BigInt(width) - size * BigInt(index + 1);
    return (bits >> shift) & ((1n << size) - 1n);
  });
  return width === 32 ? groups.join('.') : canonicalIpv6(groups.map((group) => group.toString(16)).join(':'));
}

/** The URL parser writes IPv6 hosts in RFC 5952's form (WHATWG URL, "IPv6 serializer"), with an embedded IPv4 as two groups. */
function canonicalIpv6(text: string): string {
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}
