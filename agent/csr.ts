import { createPublicKey, type KeyObject, sign } from 'node:crypto';
import forge from 'node-forge';

const { asn1 } = forge;
const { Class, Type } = asn1;

const OID_COMMON_NAME = '2.5.4.3';
const OID_EXTENSION_REQUEST = '1.2.840.113549.1.9.14';
const OID_SUBJECT_ALT_NAME = '2.5.29.17';
const OID_ECDSA_WITH_SHA256 = '1.2.840.10045.4.3.2';

/** Context tag 2, a dNSName in a GeneralName (RFC 5280, 4.2.1.6); forge types every tag number as a universal one. */
const DNS_NAME_TAG = Type.INTEGER;
/** Context tag 0, a request's attributes (RFC 2986, 4.1). */
const ATTRIBUTES_TAG = Type.NONE;

type Node = forge.asn1.Asn1;

const sequence = (...children: Node[]) => asn1.create(Class.UNIVERSAL, Type.SEQUENCE, true, children);
const set = (...children: Node[]) => asn1.create(Class.UNIVERSAL, Type.SET, true, children);
const oid = (dotted: string) => asn1.create(Class.UNIVERSAL, Type.OID, false, asn1.oidToDer(dotted).getBytes());
const utf8 = (text: string) => asn1.create(Class.UNIVERSAL, Type.UTF8, false, text);
const octets = (content: Node) => asn1.create(Class.UNIVERSAL, Type.OCTETSTRING, false, asn1.toDer(content).getBytes());

/**
 * A PKCS#10 request (RFC 2986) in PEM for a P-256 key: CN and the only SAN, a DNS name, are the node's id.
 * The private key signs and goes nowhere.
 */
export function createCsr(nodeId: string, privateKey: KeyObject): string {
  const info = requestInfo(nodeId, privateKey);
  const signature = sign('sha256', toBuffer(info), { key: privateKey, dsaEncoding: 'der' });
  const request = sequence(info, sequence(oid(OID_ECDSA_WITH_SHA256)), bitString(signature));
  return toPem('CERTIFICATE REQUEST', toBuffer(request));
}

function requestInfo(nodeId: string, privateKey: KeyObject): Node {
  const version = asn1.create(Class.UNIVERSAL, Type.INTEGER, false, '\0');
  const subject = sequence(set(sequence(oid(OID_COMMON_NAME), utf8(nodeId))));
  const spki = createPublicKey(privateKey).export({ type: 'spki', format: 'der' });
  const dnsName = asn1.create(Class.CONTEXT_SPECIFIC, DNS_NAME_TAG, false, nodeId);
  const subjectAltName = sequence(oid(OID_SUBJECT_ALT_NAME), octets(sequence(dnsName)));
  const attributes = asn1.create(Class.CONTEXT_SPECIFIC, ATTRIBUTES_TAG, true, [
    sequence(oid(OID_EXTENSION_REQUEST), set(sequence(subjectAltName))),
  ]);
  return sequence(version, subject, asn1.fromDer(spki.toString('binary')), attributes);
}

/** A BIT STRING of whole octets: its first octet counts the unused bits. */
function bitString(content: Buffer): Node {
  return asn1.create(Class.UNIVERSAL, Type.BITSTRING, false, `\0${content.toString('binary')}`);
}

function toBuffer(node: Node): Buffer {
  return Buffer.from(asn1.toDer(node).getBytes(), 'binary');
}

function toPem(label: string, der: Buffer): string {
  const lines = der.toString('base64').replace(/.{1,64}/g, '$&\n');
  return `-----BEGIN ${label}-----\n${lines}-----END ${label}-----\n`;
}
