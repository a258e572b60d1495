import forge from 'node-forge';

/**
 * DER writing and strict DER reading for X.509 (X.690, RFC 5280).
 *
 * Reading is node-forge's. Writing is done here on Buffers, because forge's tree encoder takes no value that is encoded
 * already, and a public key, an issuer's name and the constant extensions must go out byte for byte as they came in.
 */

/** One parsed value, as forge holds it. */
export type DerNode = forge.asn1.Asn1;

/** Identifier octets of the types that certificates and requests use. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  oid: 0x06,
  utf8String: 0x0c,
  printableString: 0x13,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
} as const;

/** Identifier octet of a context-specific `[number]`, constructed (EXPLICIT, or IMPLICIT of a constructed type). */
export const contextConstructed = (number: number): number => 0xa0 | number;

/** Identifier octet of a context-specific `[number]` of a primitive type. */
export const contextPrimitive = (number: number): number => 0x80 | number;

/** Encodes one value: identifier, shortest definite length, contents. Refuses (RangeError) more than 65,535 bytes. */
export function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const length = contents.reduce((sum, part) => sum + part.length, 0);
  return Buffer.concat([Buffer.from([tag, ...lengthOctets(length)]), ...contents]);
}

function lengthOctets(length: number): number[] {
  if (length < 0x80) return [length];
  if (length < 0x100) return [0x81, length];
  if (length < 0x10000) return [0x82, length >> 8, length & 0xff];
  throw new RangeError(`a DER value of ${length} bytes is larger than any certificate needs`);
}

/** SEQUENCE of values that are encoded already. */
export const sequence = (...parts: readonly Buffer[]): Buffer => der(TAG.sequence, ...parts);

/** BIT STRING; `unusedBits` of the last byte carry nothing. */
export const bitString = (bytes: Buffer, unusedBits = 0): Buffer =>
  der(TAG.bitString, Buffer.from([unusedBits]), bytes);

/** Contents of an OBJECT IDENTIFIER as forge hands them out for a parsed one: a string of one character a byte. */
export const oidContents = (dotted: string): string => forge.asn1.oidToDer(dotted).getBytes();

/** OBJECT IDENTIFIER from its dotted form. */
export const oid = (dotted: string): Buffer => der(TAG.oid, Buffer.from(oidContents(dotted), 'latin1'));

/** Positive INTEGER from hex digits without superfluous zeros. Refuses (RangeError) anything else. */
export function positiveInteger(hex: string): Buffer {
  if (!/^(?!00)(?:[0-9a-f]{2})+$/.test(hex)) throw new RangeError('expected the hex digits of a positive integer');
  const bytes = Buffer.from(hex, 'hex');
  return (bytes[0] ?? 0) < 0x80 ? der(TAG.integer, bytes) : der(TAG.integer, Buffer.from([0]), bytes);
}

/**
 * Parses exactly one value that fills `bytes` (one character a byte); undefined when it is not in DER. Never throws.
 * Left to whoever reads them: that a TRUE is FF, that a default is left out, that a SET OF is sorted.
 */
export function parseDer(bytes: string): DerNode | undefined {
  try {
    const node = forge.asn1.fromDer(bytes);
    // BER that DER forbids (long-form or indefinite lengths, padded integers) does not survive being encoded again.
    return forge.asn1.toDer(node).getBytes() === bytes ? node : undefined;
  } catch {
    return undefined;
  }
}

/** The bytes that a parsed value was read from: equal to the input because `parseDer` took nothing but DER. */
export const encoded = (node: DerNode): Buffer => Buffer.from(forge.asn1.toDer(node).getBytes(), 'latin1');

/** The values inside a constructed value; undefined when `node` is absent or carries another tag. */
export function childrenOf(node: DerNode | undefined, tag: number): DerNode[] | undefined {
  return node !== undefined && tagOf(node) === tag && typeof node.value !== 'string' ? node.value : undefined;
}

/** The contents of a primitive value, one character a byte; undefined when `node` is absent or carries another tag. */
export function contentsOf(node: DerNode | undefined, tag: number): string | undefined {
  if (node === undefined || tagOf(node) !== tag) return undefined;
  if (typeof node.value === 'string') return node.value;
  // forge has looked into a BIT STRING that happens to hold DER: undo it.
  const whole = forge.asn1.toDer(node).getBytes();
  const first = whole.charCodeAt(1);
  return whole.slice(first < 0x80 ? 2 : 2 + (first & 0x7f));
}

function tagOf(node: DerNode): number {
  return node.tagClass | node.type | (node.constructed ? 0x20 : 0);
}
