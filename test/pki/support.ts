import { execFile } from 'node:child_process';
import { createPublicKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import {
  agentTbs,
  assembleCertificate,
  type Certificate,
  newSerial,
  nominalWindow,
  serverTbs,
} from '../../src/pki/certificate.ts';
import { bitString, contextConstructed, der, oid, sequence, TAG } from '../../src/pki/der.ts';
import { ECDSA_WITH_SHA256 } from '../../src/pki/p256.ts';
import { fileSigner, type Signer, selfSignedCa } from '../../src/pki/signer.ts';

export const NODE = 'app-fsn1-7k2m';

/** A folder of its own that is removed when the test's `using` ends. */
export function temporaryFolder(): { path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), 'pushleft-pki-'));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

/** Runs the openssl CLI, the second opinion; rejects with its output when it exits other than 0. */
export async function openssl(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('openssl', args);
  return stdout;
}

export const newKey = (namedCurve = 'P-256'): KeyObject => generateKeyPairSync('ec', { namedCurve }).privateKey;
export const pemOf = (key: KeyObject): string => key.export({ format: 'pem', type: 'pkcs8' }).toString();
export const spkiOf = (key: KeyObject): Buffer => createPublicKey(key).export({ format: 'der', type: 'spki' });

/** A CA with its key, as a test's own operator would hold it. */
export interface TestCa {
  certPem: string;
  keyPem: string;
  signer: Signer;
}

export async function newCa(commonName = 'Test fleet CA', nowMs = Date.now()): Promise<TestCa> {
  const keyPem = pemOf(newKey());
  const { pem } = await selfSignedCa(keyPem, {
    commonName,
    serialHex: newSerial(randomBytes),
    ...nominalWindow(nowMs, 86_400),
  });
  return { certPem: pem, keyPem, signer: fileSigner(pem, keyPem) };
}

export async function issueAgent(ca: TestCa, key: KeyObject, nowMs = Date.now(), nodeId = NODE): Promise<Certificate> {
  const window = nominalWindow(nowMs, 3600);
  const tbs = agentTbs({
    nodeId,
    spkiDer: spkiOf(key),
    serialHex: newSerial(randomBytes),
    issuer: ca.signer.issuer,
    ...window,
  });
  return assembleCertificate(tbs, await ca.signer.sign(tbs));
}

export async function issueServer(ca: TestCa, key: KeyObject, nowMs = Date.now()): Promise<Certificate> {
  const tbs = serverTbs({
    commonName: 'gateway',
    dnsNames: ['localhost', 'gateway.example.org'],
    ipAddresses: ['127.0.0.1', '2001:db8::7'],
    spkiDer: spkiOf(key),
    serialHex: newSerial(randomBytes),
    issuer: ca.signer.issuer,
    ...nominalWindow(nowMs, 3600),
  });
  return assembleCertificate(tbs, await ca.signer.sign(tbs));
}

const utf8 = (text: string): Buffer => der(TAG.utf8String, Buffer.from(text, 'utf8'));
const NOTHING = Buffer.alloc(0);
const YES = der(TAG.boolean, Buffer.from([0xff]));

/** AttributeTypeAndValue of a name. */
export const nameAttribute = (type: string, value: Buffer | string): Buffer =>
  sequence(oid(type), typeof value === 'string' ? utf8(value) : value);
/** A subject of RDNs with the given attributes. */
export const subjectOf = (...rdns: Buffer[][]): Buffer =>
  sequence(...rdns.map((attributes) => der(TAG.set, ...attributes)));
export const commonName = (value: Buffer | string): Buffer => nameAttribute('2.5.4.3', value);
export const extensionOf = (id: string, value: Buffer, critical = false): Buffer =>
  sequence(oid(id), ...(critical ? [YES] : []), der(TAG.octetString, value));
export const attributeOf = (id: string, ...values: Buffer[]): Buffer => sequence(oid(id), der(TAG.set, ...values));
export const extensionRequest = (...extensions: Buffer[]): Buffer =>
  attributeOf('1.2.840.113549.1.9.14', sequence(...extensions));
/** subjectAltName of dNSNames. */
export const dnsSan = (...names: string[]): Buffer =>
  extensionOf('2.5.29.17', sequence(...names.map((name) => der(0x82, Buffer.from(name)))));

/** The parts of a request that a hostile sender may choose; what is left out is what an honest one sends. */
export interface CsrParts {
  key?: KeyObject;
  version?: Buffer;
  subject?: Buffer;
  spki?: Buffer;
  attributes?: Buffer[];
  algorithm?: Buffer;
  hash?: string;
  signature?: Buffer;
  extraField?: Buffer;
  extraPart?: Buffer;
}

/** DER of a request, signed with its key whatever its parts are: the refusal under test is then the only one. */
export function csrDer(parts: CsrParts = {}): Buffer {
  const key = parts.key ?? newKey();
  const info = sequence(
    parts.version ?? der(TAG.integer, Buffer.from([0])),
    parts.subject ?? subjectOf([commonName(NODE)]),
    parts.spki ?? spkiOf(key),
    der(contextConstructed(0), ...(parts.attributes ?? [extensionRequest(dnsSan(NODE))])),
    parts.extraField ?? NOTHING,
  );
  const signature = parts.signature ?? sign(parts.hash ?? 'sha256', info, key);
  return sequence(info, parts.algorithm ?? ECDSA_WITH_SHA256, bitString(signature), parts.extraPart ?? NOTHING);
}

export function csrPem(derBytes: Buffer): string {
  const lines = derBytes.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE REQUEST-----\n${lines.join('\n')}\n-----END CERTIFICATE REQUEST-----\n`;
}
