import { createHash } from 'node:crypto';
import forge from 'node-forge';
import { bitString, contextConstructed, contextPrimitive, der, oid, positiveInteger, sequence, TAG } from './der.ts';
import { distinguishedName, dnsName, ipAddress, isCertificateName } from './names.ts';
import { ECDSA_WITH_SHA256, keyIdentifier } from './p256.ts';

/** How far a certificate's notBefore lies before its nominal start, so that a host whose clock is slow accepts it. */
export const BACKDATE_MS = 60_000;

/** What a certificate says of who signed it: the CA's subject and key identifier, byte for byte as in the CA certificate. */
export interface Issuer {
  readonly nameDer: Buffer;
  readonly keyId: Buffer;
}

/** The nominal lifetime: what is stored and compared. The certificate itself starts BACKDATE_MS earlier. Whole seconds. */
export interface NominalWindow {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** What every certificate has; the serial as lower-case hex, the key as DER SubjectPublicKeyInfo of a P-256 key. */
interface CommonFields extends NominalWindow {
  readonly spkiDer: Buffer;
  readonly serialHex: string;
}

/** What an agent's certificate is made of. The same fields give the same bytes. */
export interface AgentCertificateFields extends CommonFields {
  readonly nodeId: string;
  readonly issuer: Issuer;
}

/** What the gateway's server certificate is made of. */
export interface ServerCertificateFields extends CommonFields {
  readonly commonName: string;
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly issuer: Issuer;
}

/** What a self-signed CA certificate is made of. */
export interface CaCertificateFields extends CommonFields {
  readonly commonName: string;
}

/** A finished certificate; the fingerprint is the lower-case hex SHA-256 of its DER, the form used everywhere. */
export interface Certificate {
  readonly pem: string;
  readonly der: Buffer;
  readonly fingerprintSha256: string;
}

const YES = der(TAG.boolean, Buffer.from([0xff]));
const VERSION_3 = der(contextConstructed(0), der(TAG.integer, Buffer.from([2])));
const SUBJECT_ALT_NAME = oid('2.5.29.17');
const SUBJECT_KEY_ID = oid('2.5.29.14');
const AUTHORITY_KEY_ID = oid('2.5.29.35');

/** The extensions that are the same in every end-entity certificate: CA:FALSE and digitalSignature, both critical. */
const END_ENTITY = Buffer.concat([
  critical(oid('2.5.29.19'), sequence()),
  critical(oid('2.5.29.15'), bitString(Buffer.from([0b1000_0000]), 7)),
]);
const CLIENT_AUTH = extension(oid('2.5.29.37'), sequence(oid('1.3.6.1.5.5.7.3.2')));
const SERVER_AUTH = extension(oid('2.5.29.37'), sequence(oid('1.3.6.1.5.5.7.3.1')));
/** CA:TRUE with path length 0, keyCertSign and cRLSign, all critical. */
const AUTHORITY = Buffer.concat([
  critical(oid('2.5.29.19'), sequence(YES, der(TAG.integer, Buffer.from([0])))),
  critical(oid('2.5.29.15'), bitString(Buffer.from([0b0000_0110]), 1)),
]);

/** The nominal window of a certificate that is granted at `nowMs`, cut to the whole seconds that X.509 can say. */
export function nominalWindow(nowMs: number, lifetimeSeconds: number): NominalWindow {
  const notBeforeMs = Math.floor(nowMs / 1000) * 1000;
  return { notBeforeMs, notAfterMs: notBeforeMs + lifetimeSeconds * 1000 };
}

/**
 * A new serial number: 128 random bits after a leading 01, so that it is positive, of one length and never re-encoded
 * (RFC 5280 section 4.1.2.2 allows 20 octets). `randomBytes` is node:crypto's, or a test's.
 */
export const newSerial = (randomBytes: (size: number) => Buffer): string => `01${randomBytes(16).toString('hex')}`;

/**
 * The to-be-signed part of an agent's certificate: CN and DNS name are the node id, clientAuth only.
 * Deterministic: it is built again after a crash and compared with the digest in the log.
 * Throws RangeError or TypeError for a field that no caller may pass (node id, serial, window, key).
 */
export function agentTbs(fields: AgentCertificateFields): Buffer {
  if (!isCertificateName(fields.nodeId))
    throw new RangeError('a node id in a certificate is a DNS name of at most 64 characters');
  const names = extension(SUBJECT_ALT_NAME, sequence(dnsName(fields.nodeId)));
  return endEntityTbs(fields, fields.nodeId, fields.issuer, [CLIENT_AUTH, names]);
}

/** The to-be-signed part of a gateway's server certificate: serverAuth only. Throws like `agentTbs`, also without any name. */
export function serverTbs(fields: ServerCertificateFields): Buffer {
  const names = [...fields.dnsNames.map(dnsName), ...fields.ipAddresses.map(ipAddress)];
  if (names.length === 0) throw new RangeError('a server certificate needs a DNS name or an IP address');
  return endEntityTbs(fields, fields.commonName, fields.issuer, [
    SERVER_AUTH,
    extension(SUBJECT_ALT_NAME, sequence(...names)),
  ]);
}

/** The to-be-signed part of a self-signed CA that may sign end entities and nothing below them. Throws like `agentTbs`. */
export function caTbs(fields: CaCertificateFields): Buffer {
  const name = distinguishedName(fields.commonName);
  return tbs(fields, name, name, [AUTHORITY, subjectKeyId(fields.spkiDer)]);
}

/** Joins a to-be-signed part and its DER ECDSA signature. Checks neither: `Signer` made the one, `*Tbs` the other. */
export function assembleCertificate(tbsDer: Buffer, signatureDer: Buffer): Certificate {
  const certificateDer = sequence(tbsDer, ECDSA_WITH_SHA256, bitString(signatureDer));
  const lines = certificateDer.toString('base64').match(/.{1,64}/g) ?? [];
  return {
    pem: `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`,
    der: certificateDer,
    fingerprintSha256: sha256Hex(certificateDer),
  };
}

/** Lower-case hex SHA-256: of a certificate's DER its fingerprint, of a to-be-signed part the digest that the log records. */
export const sha256Hex = (bytes: Buffer | string): string => createHash('sha256').update(bytes).digest('hex');

function endEntityTbs(fields: CommonFields, commonName: string, issuer: Issuer, own: readonly Buffer[]): Buffer {
  const authority = extension(AUTHORITY_KEY_ID, sequence(der(contextPrimitive(0), issuer.keyId)));
  const extensions = [END_ENTITY, ...own, subjectKeyId(fields.spkiDer), authority];
  return tbs(fields, issuer.nameDer, distinguishedName(commonName), extensions);
}

/** TBSCertificate (RFC 5280 section 4.1). */
function tbs(fields: CommonFields, issuerName: Buffer, subject: Buffer, extensions: readonly Buffer[]): Buffer {
  if (fields.notAfterMs <= fields.notBeforeMs) throw new RangeError('a certificate ends after it starts');
  return sequence(
    VERSION_3,
    serialNumber(fields.serialHex),
    ECDSA_WITH_SHA256,
    issuerName,
    sequence(time(fields.notBeforeMs - BACKDATE_MS), time(fields.notAfterMs)),
    subject,
    fields.spkiDer,
    der(contextConstructed(3), sequence(...extensions)),
  );
}

function serialNumber(hex: string): Buffer {
  if (hex.length > 40) throw new RangeError('a serial number has at most 20 octets');
  return positiveInteger(hex);
}

/** UTCTime before 2050, GeneralizedTime from then on (RFC 5280 section 4.1.2.5). */
function time(ms: number): Buffer {
  const date = new Date(ms);
  const year = date.getUTCFullYear();
  if (ms % 1000 !== 0 || !(year >= 1970 && year <= 9999))
    throw new RangeError('a certificate time is a whole second from 1970 to 9999');
  return year < 2050
    ? der(TAG.utcTime, Buffer.from(forge.asn1.dateToUtcTime(date), 'ascii'))
    : der(TAG.generalizedTime, Buffer.from(forge.asn1.dateToGeneralizedTime(date), 'ascii'));
}

function subjectKeyId(spkiDer: Buffer): Buffer {
  return extension(SUBJECT_KEY_ID, der(TAG.octetString, keyIdentifier(spkiDer)));
}

function extension(id: Buffer, value: Buffer): Buffer {
  return sequence(id, der(TAG.octetString, value));
}

function critical(id: Buffer, value: Buffer): Buffer {
  return sequence(id, YES, der(TAG.octetString, value));
}
