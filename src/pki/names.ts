import { isIPv4, isIPv6 } from 'node:net';
import { contextPrimitive, der, oid, sequence, TAG } from './der.ts';

const COMMON_NAME = oid('2.5.4.3');
/** Upper bound of a common name (ub-common-name, RFC 5280 appendix A.1). */
const COMMON_NAME_MAX = 64;
const LABEL = '[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?';
const DNS_NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`);

/** Whether `name` can be both the common name and a DNS name of a certificate: letters, digits, hyphens, dots; 64 at most. */
export const isCertificateName = (name: string): boolean => name.length <= COMMON_NAME_MAX && DNS_NAME.test(name);

/** A distinguished name of one common name, as UTF8String. Refuses (RangeError) an empty, long or non-printable one. */
export function distinguishedName(commonName: string): Buffer {
  if (!/^[\x20-\x7e]+$/.test(commonName) || commonName.length > COMMON_NAME_MAX) {
    throw new RangeError(`a common name is 1 to ${COMMON_NAME_MAX} printable ASCII characters`);
  }
  return sequence(der(TAG.set, sequence(COMMON_NAME, der(TAG.utf8String, Buffer.from(commonName, 'ascii')))));
}

/** GeneralName dNSName (RFC 5280 section 4.2.1.6). Refuses (RangeError) what is not a DNS name; wildcards included. */
export function dnsName(name: string): Buffer {
  if (name.length > 253 || !DNS_NAME.test(name)) throw new RangeError(`${JSON.stringify(name)} is not a DNS name`);
  return der(contextPrimitive(2), Buffer.from(name, 'ascii'));
}

/** GeneralName iPAddress: 4 or 16 bytes. Refuses (RangeError) what is not a plain IPv4 or IPv6 address. */
export function ipAddress(address: string): Buffer {
  return der(contextPrimitive(7), Buffer.from(isIPv4(address) ? address.split('.').map(Number) : ipv6Bytes(address)));
}

function ipv6Bytes(address: string): number[] {
  if (!isIPv6(address) || address.includes('%'))
    throw new RangeError(`${JSON.stringify(address)} is not an IP address`);
  // The URL parser brings every spelling (embedded IPv4 too) to groups of hex digits with at most one "::".
  const [head = '', tail = ''] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const before = groups(head);
  const after = groups(tail);
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => 0);
  return [...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]);
}

const groups = (text: string): number[] =>
  text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
