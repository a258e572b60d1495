import { createHash, createPublicKey, type KeyObject } from 'node:crypto';
import { oid, sequence } from './der.ts';

/** AlgorithmIdentifier ecdsa-with-SHA256, parameters absent (RFC 5758 section 3.2). */
export const ECDSA_WITH_SHA256 = sequence(oid('1.2.840.10045.4.3.2'));

/** What every SubjectPublicKeyInfo of an uncompressed point on the named curve P-256 starts with (RFC 5480 section 2). */
const SPKI_PREFIX = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex');
const SPKI_BYTES = 91;
const POINT_BYTES = 65;

/** The key in a DER SubjectPublicKeyInfo, or undefined when it is anything but an uncompressed point that lies on P-256. */
export function p256PublicKey(spkiDer: Buffer): KeyObject | undefined {
  if (!hasP256Shape(spkiDer)) return undefined;
  try {
    return createPublicKey({ key: spkiDer, format: 'der', type: 'spki' });
  } catch {
    return undefined; // OpenSSL checks that the point is on the curve
  }
}

/** Key identifier of a P-256 key: SHA-1 over the point (RFC 5280 section 4.2.1.2, method 1); a name, not a safeguard. */
export function keyIdentifier(spkiDer: Buffer): Buffer {
  if (!hasP256Shape(spkiDer)) {
    throw new TypeError('expected the SubjectPublicKeyInfo of a P-256 key');
  }
  return createHash('sha1').update(spkiDer.subarray(-POINT_BYTES)).digest();
}

function hasP256Shape(spkiDer: Buffer): boolean {
  return spkiDer.length === SPKI_BYTES && spkiDer.subarray(0, SPKI_PREFIX.length).equals(SPKI_PREFIX);
}
