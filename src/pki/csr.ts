import { verify } from 'node:crypto';
import {
  childrenOf,
  contentsOf,
  contextConstructed,
  contextPrimitive,
  type DerNode,
  encoded,
  oidContents,
  parseDer,
  TAG,
} from './der.ts';
import { isCertificateName } from './names.ts';
import { ECDSA_WITH_SHA256, p256PublicKey } from './p256.ts';

/** Largest accepted request, in characters of PEM. A P-256 request with a SAN has about 500. */
export const CSR_MAX_LENGTH = 8192;

/** Every reason why a certificate request is refused, with the sentence that the caller is told. */
export const CSR_REFUSALS = {
  csr_too_large: 'The certificate request is larger than 8 KiB.',
  csr_malformed: 'The certificate request is not one PEM block that holds exactly one PKCS#10 request in DER.',
  csr_key_unsupported: 'The public key is not an uncompressed point on the named curve P-256.',
  csr_algorithm_unsupported: 'The request is not signed with ecdsa-with-SHA256.',
  csr_subject_mismatch: 'The subject is not exactly one common name equal to the node id.',
  csr_duplicate_attribute: 'An attribute occurs twice.',
  csr_duplicate_extension: 'An extension occurs twice.',
  csr_extension_unsupported: 'A critical extension is not known here.',
  csr_san_mismatch: 'A subject alternative name is not a DNS name equal to the node id.',
  csr_requests_ca: 'The request asks for the rights of a CA.',
  csr_signature_invalid: 'The signature does not verify with the public key of the request.',
} as const;

/** A closed code of `CSR_REFUSALS`. */
export type CsrRefusal = keyof typeof CSR_REFUSALS;

/** The requested public key as DER SubjectPublicKeyInfo (91 bytes), or why there is none. */
export type CsrReading =
  | { readonly ok: true; readonly spkiDer: Buffer }
  | { readonly ok: false; readonly code: CsrRefusal };

/** CertificationRequest (RFC 2986 section 4) as far as its shape goes. */
interface Csr {
  readonly signedBytes: Buffer;
  readonly subject: DerNode;
  readonly spkiDer: Buffer;
  readonly attributes: readonly DerNode[];
  readonly algorithmDer: Buffer;
  readonly signatureDer: Buffer;
}

interface Extension {
  readonly id: string;
  readonly critical: boolean;
  readonly value: string;
}

const COMMON_NAME = oidContents('2.5.4.3');
const EXTENSION_REQUEST = oidContents('1.2.840.113549.1.9.14');

/** What is asked of the extensions that are known. Nothing of them is copied into the certificate: they only may not contradict it. */
const EXTENSION_RULES = new Map<string, (value: string, nodeId: string) => CsrRefusal | undefined>([
  [oidContents('2.5.29.17'), subjectAltNameRefusal],
  [oidContents('2.5.29.19'), basicConstraintsRefusal],
  [oidContents('2.5.29.15'), keyUsageRefusal],
  [oidContents('2.5.29.37'), () => undefined], // extended key usage: the certificate says clientAuth whatever was asked for
]);

/**
 * Reads a PKCS#10 request for the node `nodeId` and proves that its sender holds the key.
 * Only the public key is taken from it; all else must agree with what the certificate will say.
 * Never throws. The signature is checked last, because it costs the most and the sender is a stranger.
 */
export function readCsr(pem: string, nodeId: string): CsrReading {
  if (pem.length > CSR_MAX_LENGTH) return refuse('csr_too_large');
  const csr = parseCsr(pem);
  if (csr === undefined) return refuse('csr_malformed');
  const publicKey = p256PublicKey(csr.spkiDer);
  if (publicKey === undefined) return refuse('csr_key_unsupported');
  if (!csr.algorithmDer.equals(ECDSA_WITH_SHA256)) return refuse('csr_algorithm_unsupported');
  const refusal = subjectRefusal(csr.subject, nodeId) ?? attributesRefusal(csr.attributes, nodeId);
  if (refusal !== undefined) return refuse(refusal);
  if (!verify('sha256', csr.signedBytes, publicKey, csr.signatureDer)) return refuse('csr_signature_invalid');
  return { ok: true, spkiDer: csr.spkiDer };
}

const refuse = (code: CsrRefusal): CsrReading => ({ ok: false, code });

/** The bytes in the one PEM block (RFC 7468, strict: no other text, canonical base64), one character a byte. */
function bytesOfPem(pem: string): string | undefined {
  const body =
    /^\s*-----BEGIN CERTIFICATE REQUEST-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE REQUEST-----\s*$/.exec(
      pem,
    )?.[1];
  if (body === undefined) return undefined;
  const base64 = body.replace(/[\r\n]/g, '');
  const bytes = Buffer.from(base64, 'base64');
  return bytes.toString('base64') === base64 ? bytes.toString('latin1') : undefined;
}

function parseCsr(pem: string): Csr | undefined {
  const bytes = bytesOfPem(pem);
  const parts = childrenOf(bytes === undefined ? undefined : parseDer(bytes), TAG.sequence);
  if (parts?.length !== 3) return undefined;
  const [info, algorithm, signature] = parts;
  const fields = childrenOf(info, TAG.sequence);
  if (fields?.length !== 4) return undefined;
  const [version, subject, spki, requested] = fields;
  const attributes = childrenOf(requested, contextConstructed(0));
  const signatureBits = contentsOf(signature, TAG.bitString);
  if (info === undefined || algorithm === undefined || subject === undefined || spki === undefined) return undefined;
  if (contentsOf(version, TAG.integer) !== '\0' || attributes === undefined || !signatureBits?.startsWith('\0'))
    return undefined;
  return {
    signedBytes: encoded(info),
    subject,
    spkiDer: encoded(spki),
    attributes,
    algorithmDer: encoded(algorithm),
    signatureDer: Buffer.from(signatureBits.slice(1), 'latin1'),
  };
}

function subjectRefusal(subject: DerNode, nodeId: string): CsrRefusal | undefined {
  const attribute = only(childrenOf(only(childrenOf(subject, TAG.sequence)), TAG.set));
  const parts = childrenOf(attribute, TAG.sequence);
  const name = contentsOf(parts?.[1], TAG.utf8String) ?? contentsOf(parts?.[1], TAG.printableString);
  // A node id is ASCII, so that equal characters are equal bytes in both string types.
  const matches =
    parts?.length === 2 &&
    contentsOf(parts[0], TAG.oid) === COMMON_NAME &&
    name === nodeId &&
    isCertificateName(nodeId);
  return matches ? undefined : 'csr_subject_mismatch';
}

function attributesRefusal(attributes: readonly DerNode[], nodeId: string): CsrRefusal | undefined {
  const seen = new Set<string>();
  for (const attribute of attributes) {
    const parts = childrenOf(attribute, TAG.sequence);
    const id = contentsOf(parts?.[0], TAG.oid);
    const values = childrenOf(parts?.[1], TAG.set);
    if (parts?.length !== 2 || id === undefined || values === undefined) return 'csr_malformed';
    if (seen.has(id)) return 'csr_duplicate_attribute';
    seen.add(id);
    const refusal = id === EXTENSION_REQUEST ? extensionsRefusal(only(values), nodeId) : undefined;
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function extensionsRefusal(list: DerNode | undefined, nodeId: string): CsrRefusal | undefined {
  const seen = new Set<string>();
  const nodes = childrenOf(list, TAG.sequence);
  if (nodes === undefined) return 'csr_malformed';
  for (const node of nodes) {
    const extension = readExtension(node);
    if (extension === undefined) return 'csr_malformed';
    if (seen.has(extension.id)) return 'csr_duplicate_extension';
    seen.add(extension.id);
    const rule = EXTENSION_RULES.get(extension.id);
    if (rule === undefined && extension.critical) return 'csr_extension_unsupported';
    const refusal = rule?.(extension.value, nodeId);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

/** Extension (RFC 5280 section 4.1). In DER a TRUE is FF and a FALSE, being the default, is left out. */
function readExtension(node: DerNode): Extension | undefined {
  const parts = childrenOf(node, TAG.sequence);
  if (parts === undefined || parts.length < 2 || parts.length > 3) return undefined;
  const critical = parts.length === 3;
  const id = contentsOf(parts[0], TAG.oid);
  const value = contentsOf(parts.at(-1), TAG.octetString);
  if (id === undefined || value === undefined) return undefined;
  return critical && !isTrue(parts[1]) ? undefined : { id, critical, value };
}

function subjectAltNameRefusal(value: string, nodeId: string): CsrRefusal | undefined {
  const names = childrenOf(parseDer(value), TAG.sequence);
  if (names === undefined || names.length === 0) return 'csr_malformed';
  return names.every((name) => contentsOf(name, contextPrimitive(2)) === nodeId) ? undefined : 'csr_san_mismatch';
}

/** BasicConstraints (RFC 5280 section 4.2.1.9): an empty sequence is CA:FALSE. */
function basicConstraintsRefusal(value: string): CsrRefusal | undefined {
  const parts = childrenOf(parseDer(value), TAG.sequence);
  if (parts?.length === 0) return undefined;
  return isTrue(parts?.[0]) ? 'csr_requests_ca' : 'csr_malformed';
}

/** KeyUsage (RFC 5280 section 4.2.1.3): keyCertSign is bit 5, cRLSign bit 6. */
function keyUsageRefusal(value: string): CsrRefusal | undefined {
  const bits = contentsOf(parseDer(value), TAG.bitString);
  if (bits === undefined || bits.length < 2) return 'csr_malformed';
  return (bits.charCodeAt(1) & 0b0000_0110) === 0 ? undefined : 'csr_requests_ca';
}

const isTrue = (node: DerNode | undefined): boolean => contentsOf(node, TAG.boolean) === '\xff';

const only = (nodes: readonly DerNode[] | undefined): DerNode | undefined =>
  nodes?.length === 1 ? nodes[0] : undefined;
