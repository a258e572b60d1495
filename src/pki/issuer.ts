import { createHash, X509Certificate } from 'node:crypto';
import type { Issuer } from './certificate.ts';
import {
  childrenOf,
  contentsOf,
  contextConstructed,
  type DerNode,
  encoded,
  oidContents,
  parseDer,
  TAG,
} from './der.ts';

const SUBJECT_KEY_ID = oidContents('2.5.29.14');

/**
 * What certificates signed by the CA in `caCertPem` carry of it: its subject byte for byte, and its own subject key
 * identifier, which need not be the hash that we would choose (RFC 5280 section 4.2.1.1).
 * Throws when the PEM holds no X.509 v3 certificate in DER.
 */
export function issuerOf(caCertPem: string): Issuer {
  const certificate = parseDer(new X509Certificate(caCertPem).raw.toString('latin1'));
  const fields = childrenOf(childrenOf(certificate, TAG.sequence)?.[0], TAG.sequence);
  // version, serial, algorithm, issuer, validity, subject, key, …, [3] extensions
  const [version, , , , , subject, spki] = fields ?? [];
  if (childrenOf(version, contextConstructed(0)) === undefined || subject === undefined || spki === undefined) {
    throw new Error('the CA certificate is not an X.509 v3 certificate in DER');
  }
  const extensions = childrenOf(childrenOf(fields?.at(-1), contextConstructed(3))?.[0], TAG.sequence) ?? [];
  return { nameDer: encoded(subject), keyId: ownKeyId(extensions) ?? hashedKeyId(spki) };
}

function ownKeyId(extensions: readonly DerNode[]): Buffer | undefined {
  for (const extension of extensions) {
    const parts = childrenOf(extension, TAG.sequence);
    if (contentsOf(parts?.[0], TAG.oid) !== SUBJECT_KEY_ID) continue;
    const value = contentsOf(parts?.at(-1), TAG.octetString);
    const keyId = value === undefined ? undefined : contentsOf(parseDer(value), TAG.octetString);
    return keyId === undefined ? undefined : Buffer.from(keyId, 'latin1');
  }
  return undefined;
}

function hashedKeyId(spki: DerNode): Buffer {
  const bits = contentsOf(childrenOf(spki, TAG.sequence)?.[1], TAG.bitString) ?? '';
  return createHash('sha1').update(bits.slice(1), 'latin1').digest();
}
