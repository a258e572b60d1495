import { createPublicKey, generateKeyPair, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import {
  assembleCertificate,
  type Certificate,
  type NominalWindow,
  newSerial,
  nominalWindow,
  serverTbs,
} from './certificate.ts';
import { type Signer, selfSignedCa } from './signer.ts';

const DAY_SECONDS = 24 * 60 * 60;
const CA_LIFETIME_SECONDS = 3650 * DAY_SECONDS;
const GATEWAY_LIFETIME_SECONDS = 397 * DAY_SECONDS;
/** Agents check these certificates by clocks of their own; one that is ten minutes slow must not cut its host off. */
const BACKDATE_SECONDS = 60 * 60;

/** A certificate that was just made, and what is recorded of it. Times are ms. */
export interface MadeCertificate extends Certificate, NominalWindow {
  readonly serialHex: string;
}

/** Whom a gateway's certificate is for. */
export interface GatewayNames {
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
}

/** A new P-256 key in PEM (PKCS #8). */
export async function makeKeyPem(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
}

/** The certificate of a CA for a key, good for ten years from `nowMs`. Its name is its own, so that messages tell two CAs apart. */
export async function makeCa(keyPem: string, nowMs: number): Promise<MadeCertificate> {
  const serialHex = newSerial(randomBytes);
  const window = backdated(nowMs, CA_LIFETIME_SECONDS);
  const commonName = `Pushleft CA ${serialHex.slice(2, 10)}`;
  return { ...(await selfSignedCa(keyPem, { commonName, serialHex, ...window })), serialHex, ...window };
}

/**
 * The server certificate of gateways for a key, good for 397 days from `nowMs`, or as long as its CA. Throws when there is no DNS name and
 * no address, or the key cannot be read.
 */
export async function makeGatewayCertificate(
  names: GatewayNames,
  keyPem: string,
  signer: Signer,
  nowMs: number,
): Promise<MadeCertificate> {
  const serialHex = newSerial(randomBytes);
  const { notBeforeMs, notAfterMs } = backdated(nowMs, GATEWAY_LIFETIME_SECONDS);
  const window = { notBeforeMs, notAfterMs: Math.min(notAfterMs, signer.caNotAfterMs) };
  const spkiDer = createPublicKey(keyPem).export({ format: 'der', type: 'spki' });
  const tbs = serverTbs({ ...names, spkiDer, serialHex, issuer: signer.issuer, ...window });
  return { ...assembleCertificate(tbs, await signer.sign(tbs)), serialHex, ...window };
}

function backdated(nowMs: number, lifetimeSeconds: number): NominalWindow {
  return nominalWindow(nowMs - BACKDATE_SECONDS * 1000, lifetimeSeconds + BACKDATE_SECONDS);
}
