import { createPublicKey } from 'node:crypto';

/** The SPKI PEM (RFC 8410) of a raw Ed25519 public key given in base64, as openssl reads it. */
export function releaseKeyPem(rawBase64: string): string {
  const x = Buffer.from(rawBase64, 'base64').toString('base64url');
  const key = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } });
  return key.export({ format: 'pem', type: 'spki' }).toString();
}
