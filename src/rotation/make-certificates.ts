import { createPrivateKey, createPublicKey, generateKeyPair, randomBytes, X509Certificate } from 'node:crypto';
import { promisify } from 'node:util';
import { attempt } from '../pki/bundle.ts';
import {
  assembleCertificate,
  type Certificate,
  newSerial,
  nominalWindow,
  serverTbs,
  sha256Hex,
} from '../pki/certificate.ts';
import { type Signer, selfSignedCa } from '../pki/signer.ts';
import type { HeldCa } from './host-files.ts';

const DAY_SECONDS = 24 * 60 * 60;
const CA_LIFETIME_SECONDS = 3650 * DAY_SECONDS;
const GATEWAY_LIFETIME_SECONDS = 397 * DAY_SECONDS;
/** Agents check these certificates by clocks of their own; one that is ten minutes slow must not cut its host off. */
const BACKDATE_MS = 60 * 60 * 1000;

/** Makes a CA with a new P-256 key. Its name is its own, so that openssl's messages tell two of them apart. */
export async function makeCa(nowMs: number): Promise<HeldCa & { readonly notAfterMs: number }> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  const keyPem = privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
  const serialHex = newSerial(randomBytes);
  const window = nominalWindow(nowMs - BACKDATE_MS, CA_LIFETIME_SECONDS);
  const ca = await selfSignedCa(keyPem, { commonName: `Pushleft CA ${serialHex.slice(2, 10)}`, serialHex, ...window });
  return { sha256: ca.fingerprintSha256, certPem: ca.pem, keyPem, notAfterMs: window.notAfterMs };
}

/** A gateway's certificate, and what is recorded of it. Times are ms. */
export interface GatewayCertificate extends Certificate {
  readonly serialHex: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/**
 * Signs a gateway's certificate anew: the names of the present one, the key that it has. Undefined where the present certificate or the key
 * cannot be read, or names nothing.
 */
export async function resignGateway(
  present: { readonly certPem: string; readonly keyPem: string },
  signer: Signer,
  nowMs: number,
): Promise<GatewayCertificate | undefined> {
  const certificate = attempt(() => new X509Certificate(present.certPem));
  const key = attempt(() => createPublicKey(createPrivateKey(present.keyPem)));
  if (certificate === undefined || key === undefined) return undefined;
  const { dnsNames, ipAddresses } = namesOf(certificate);
  if (dnsNames.length + ipAddresses.length === 0) return undefined;
  const serialHex = newSerial(randomBytes);
  const window = nominalWindow(nowMs - BACKDATE_MS, GATEWAY_LIFETIME_SECONDS);
  const notAfterMs = Math.min(window.notAfterMs, signer.caNotAfterMs);
  const tbs = serverTbs({
    commonName: /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? 'Pushleft gateway',
    dnsNames,
    ipAddresses,
    spkiDer: key.export({ format: 'der', type: 'spki' }),
    serialHex,
    issuer: signer.issuer,
    notBeforeMs: window.notBeforeMs,
    notAfterMs,
  });
  const made = assembleCertificate(tbs, await signer.sign(tbs));
  return { ...made, serialHex, notBeforeMs: window.notBeforeMs, notAfterMs };
}

/** Whether a certificate is of a CA, by name and by signature. */
export function isIssuedBy(certPem: string | undefined, caPem: string): boolean {
  const [certificate, ca] = [certPem, caPem].map((pem) =>
    pem === undefined ? undefined : attempt(() => new X509Certificate(pem)),
  );
  return (
    certificate !== undefined && ca !== undefined && certificate.checkIssued(ca) && certificate.verify(ca.publicKey)
  );
}

/** Fingerprint and end (ms) of a CA's certificate; undefined where the PEM holds none. */
export function describeCa(pem: string): { readonly sha256: string; readonly notAfterMs: number } | undefined {
  const ca = attempt(() => new X509Certificate(pem));
  return ca?.ca === true ? { sha256: sha256Hex(ca.raw), notAfterMs: ca.validToDate.getTime() } : undefined;
}

function namesOf({ subjectAltName = '' }: X509Certificate) {
  const names = subjectAltName.split(', ');
  const of = (prefix: string) => names.flatMap((name) => (name.startsWith(prefix) ? name.slice(prefix.length) : []));
  return { dnsNames: of('DNS:'), ipAddresses: of('IP Address:') };
}
