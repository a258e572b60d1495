import { hash as digest } from 'node:crypto';

/** The hash before the first event. */
export const GENESIS_HASH = '0'.repeat(64);

/**
 * The chain's next hash: SHA-256 over the 32 bytes of the previous hash and the exact stored bytes (UTF-8) of the event.
 * An edited, removed or reordered event changes every hash after it. The database computes the same in `log.append`.
 */
export function chainHash(previousHex: string, body: string): string {
  const bytes = Buffer.allocUnsafe(32 + Buffer.byteLength(body));
  bytes.write(previousHex, 0, 32, 'hex');
  bytes.write(body, 32);
  return digest('sha256', bytes, 'hex');
}

/** The event's id, a UUID (RFC 9562 version 8) made from its chain hash: the same bytes at the same place have the same id. */
export function eventId(hashHex: string): string {
  const variant = ((Number.parseInt(hashHex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  const parts = [
    hashHex.slice(0, 8),
    hashHex.slice(8, 12),
    `8${hashHex.slice(13, 16)}`,
    `${variant}${hashHex.slice(17, 20)}`,
    hashHex.slice(20, 32),
  ];
  return parts.join('-');
}
