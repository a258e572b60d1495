import { type KeyObject, X509Certificate } from 'node:crypto';

/** Every certificate of a PEM bundle, in its order. Throws when one of them is not a certificate. */
export function readBundle(pem: string): X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return blocks.map((block) => new X509Certificate(block));
}

/** The subject's only CN; undefined when there is none or more than one. */
export function commonName(certificate: X509Certificate): string | undefined {
  const names = certificate.subject.split('\n').filter((line) => line.startsWith('CN='));
  return names.length === 1 ? names[0]?.slice('CN='.length) : undefined;
}

/** A usable certificate, or what is wrong with it in a few words. */
export type CertificateCheck =
  | { readonly ok: true; readonly certificate: X509Certificate }
  | { readonly ok: false; readonly problem: string };

/**
 * Whether what the gateway sent is this node's certificate: by a CA of the bundle, for the own key, with the node's id as CN.
 * Validity is left to the gateway, because a fresh host's clock may be wrong.
 */
export function checkCertificate(
  nodeId: string,
  key: KeyObject,
  certificatePem: string,
  caPem: string,
): CertificateCheck {
  try {
    const [certificate] = readBundle(certificatePem);
    if (certificate === undefined) return { ok: false, problem: 'it is not a certificate' };
    const issuer = readBundle(caPem).find(
      (ca) => ca.ca && certificate.checkIssued(ca) && certificate.verify(ca.publicKey),
    );
    if (issuer === undefined) return { ok: false, problem: 'no CA of the bundle has issued it' };
    if (!certificate.checkPrivateKey(key)) return { ok: false, problem: 'it is for another key' };
    if (commonName(certificate) !== nodeId) return { ok: false, problem: 'it is for another node' };
    return { ok: true, certificate };
  } catch {
    return { ok: false, problem: 'it cannot be parsed' };
  }
}
