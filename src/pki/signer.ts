import { createPrivateKey, createPublicKey, type KeyObject, sign, X509Certificate } from 'node:crypto';
import {
  assembleCertificate,
  type CaCertificateFields,
  type Certificate,
  caTbs,
  type Issuer,
  sha256Hex,
} from './certificate.ts';
import { issuerOf } from './issuer.ts';

/** Signs in the name of one CA. A file holds the key today; an HSM or a KMS would implement the same port. */
export interface Signer {
  /** Fingerprint of the CA certificate, recorded with every certificate that it issues. */
  readonly caSha256: string;
  readonly caNotAfterMs: number;
  readonly issuer: Issuer;
  /** The DER ECDSA-with-SHA256 signature over a to-be-signed part. */
  sign(tbs: Buffer): Promise<Buffer>;
}

/**
 * A signer whose key is in a file's content; the only code that holds the CA's private key.
 * Throws when either PEM cannot be read. Whether the two belong together is `loadPki`'s self-test.
 */
export function fileSigner(caCertPem: string, caKeyPem: string): Signer {
  const certificate = new X509Certificate(caCertPem);
  const key = createPrivateKey(caKeyPem);
  return Object.freeze({
    caSha256: sha256Hex(certificate.raw),
    caNotAfterMs: certificate.validToDate.getTime(),
    issuer: issuerOf(caCertPem),
    sign: (tbs: Buffer) => signOnThreadPool(tbs, key),
  });
}

/** A self-signed CA certificate for the P-256 key in `caKeyPem`. Throws when the PEM or a field is not acceptable. */
export async function selfSignedCa(
  caKeyPem: string,
  fields: Omit<CaCertificateFields, 'spkiDer'>,
): Promise<Certificate> {
  const key = createPrivateKey(caKeyPem);
  const tbs = caTbs({ ...fields, spkiDer: createPublicKey(key).export({ format: 'der', type: 'spki' }) });
  return assembleCertificate(tbs, await signOnThreadPool(tbs, key));
}

function signOnThreadPool(bytes: Buffer, key: KeyObject): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    sign('sha256', bytes, key, (error, signature) => (error === null ? resolve(signature) : reject(error)));
  });
}
