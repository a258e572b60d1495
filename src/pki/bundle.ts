import { X509Certificate } from 'node:crypto';

/** The CA certificates of a bundle, or undefined when it holds none, a broken one, or one that is no CA. */
export function parseBundle(pem: string): X509Certificate[] | undefined {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  // Every block that begins must also end: a truncated bundle would otherwise lose its last CA in silence.
  if (blocks.length === 0 || blocks.length !== pem.split('-----BEGIN ').length - 1) return undefined;
  const certificates = blocks.map(parseCertificate);
  return certificates.every((certificate) => certificate?.ca === true)
    ? certificates.filter((c) => c !== undefined)
    : undefined;
}

/** Whether a CA signed a certificate, by name and by signature. */
export const issued = (ca: X509Certificate, certificate: X509Certificate): boolean =>
  certificate.checkIssued(ca) && certificate.verify(ca.publicKey);

/** The certificate in a PEM, the first where there are several; undefined when it cannot be read. */
export const parseCertificate = (pem: string): X509Certificate | undefined => attempt(() => new X509Certificate(pem));

/** What `parse` returns, or undefined when it throws: OpenSSL's reasons help no operator. */
export function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
