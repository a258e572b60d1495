import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CSR_MAX_LENGTH, readCsr } from '../../src/pki/csr.ts';
import { bitString, der, sequence, TAG } from '../../src/pki/der.ts';
import {
  csrDer,
  csrPem,
  dnsSan,
  extensionOf,
  extensionRequest,
  NODE,
  newKey,
  openssl,
  temporaryFolder,
} from './support.ts';

const CA_TRUE = sequence(der(TAG.boolean, Buffer.from([0xff])));
const refused = (code: string) => ({ ok: false, code });

describe('bytes that are not one request', () => {
  const good = csrDer();
  const block = csrPem(good);
  /** One whose base64 ends in padding: the lengths of signatures differ. */
  const padded = requestWhere((request) => request.length % 3 === 2);

  test.each<[string, string]>([
    ['nothing', ''],
    ['no PEM', 'hello'],
    ['the label of a certificate', block.replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE')],
    ['the old label', block.replaceAll('CERTIFICATE REQUEST', 'NEW CERTIFICATE REQUEST')],
    ['two blocks', block + block],
    ['text before', `x${block}`],
    ['text after', `${block}x`],
    ['PEM headers', block.replace('-----\n', '-----\nProc-Type: 4,CLEAR\n\n')],
    ['truncated PEM', block.slice(0, -40)],
    ['bits beyond the last base64 byte', withStrayBit(csrPem(padded))],
    ['trailing bytes after the DER', csrPem(Buffer.concat([good, Buffer.from([0])]))],
    ['a second value after the DER', csrPem(Buffer.concat([good, good]))],
    ['truncated DER', csrPem(good.subarray(0, -1))],
    ['a fifth field in the signed part', csrPem(csrDer({ extraField: sequence() }))],
    ['a fourth part', csrPem(csrDer({ extraPart: sequence() }))],
    ['a signature of which a bit is unused', csrPem(withUnusedBit(good))],
    ['version 1', csrPem(csrDer({ version: der(TAG.integer, Buffer.from([1])) }))],
    ['a padded version', csrPem(csrDer({ version: der(TAG.integer, Buffer.from([0, 0])) }))],
    [
      'indefinite length',
      csrPem(Buffer.concat([Buffer.from([0x30, 0x80]), good.subarray(good[1] === 0x82 ? 4 : 3), Buffer.from([0, 0])])),
    ],
    [
      'a length longer than it need be',
      csrPem(Buffer.concat([Buffer.from([0x30, 0x83, 0]), lengthOf(good), good.subarray(good[1] === 0x82 ? 4 : 3)])),
    ],
  ])('%s: csr_malformed', (_, pem) => expect(readCsr(pem, NODE)).toEqual(refused('csr_malformed')));

  test('openssl reads the indefinite length that is refused here', async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'ber.der');
    writeFileSync(
      file,
      Buffer.concat([Buffer.from([0x30, 0x80]), good.subarray(good[1] === 0x82 ? 4 : 3), Buffer.from([0, 0])]),
    );
    expect(await openssl('asn1parse', '-inform', 'DER', '-in', file)).toContain('l=inf  cons: SEQUENCE');
  });

  test('one character more than the cap: csr_too_large; at the cap it is read', () => {
    expect(readCsr(block.padEnd(CSR_MAX_LENGTH, '\n'), NODE).ok).toBe(true);
    expect(readCsr(block.padEnd(CSR_MAX_LENGTH + 1, '\n'), NODE)).toEqual(refused('csr_too_large'));
  });

  test('sequences nested as deep as the cap allows: csr_malformed', () => {
    let nested: Buffer = Buffer.alloc(0);
    for (let depth = 0; depth < 1500; depth += 1) nested = sequence(nested);
    expect(readCsr(csrPem(nested), NODE)).toEqual(refused('csr_malformed'));
  });
});

describe('whatever is sent', () => {
  test('random text and bytes: refused, never thrown', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.uint8Array({ maxLength: 600 }).map((bytes) => csrPem(Buffer.from(bytes))),
        ),
        fc.string(),
        (pem, nodeId) => {
          expect(readCsr(pem, nodeId).ok).toBe(false);
        },
      ),
    );
  });

  test('an honest request with some bytes changed: refused, never thrown', () => {
    const good = csrDer({
      attributes: [extensionRequest(dnsSan(NODE), extensionOf('2.5.29.15', bitString(Buffer.from([0x80]), 7), true))],
    });
    const edit = fc.record({ at: fc.nat(good.length - 1), xor: fc.integer({ min: 1, max: 255 }) });
    fc.assert(
      fc.property(fc.uniqueArray(edit, { minLength: 1, maxLength: 3, selector: ({ at }) => at }), (edits) => {
        const bytes = Buffer.from(good);
        for (const { at, xor } of edits) bytes.writeUInt8((bytes[at] ?? 0) ^ xor, at);
        expect(readCsr(csrPem(bytes), NODE).ok).toBe(false);
      }),
      { numRuns: 2000 },
    );
  });

  test('a well-signed request with some bytes of its attributes changed: never thrown', () => {
    const attributes = extensionRequest(
      dnsSan(NODE),
      extensionOf('2.5.29.19', CA_TRUE),
      extensionOf('2.5.29.15', bitString(Buffer.from([0x80]), 7)),
    );
    const key = newKey();
    const edit = fc.record({ at: fc.nat(attributes.length - 1), byte: fc.integer({ min: 0, max: 255 }) });
    fc.assert(
      fc.property(fc.array(edit, { minLength: 1, maxLength: 4 }), (edits) => {
        const bytes = Buffer.from(attributes);
        for (const { at, byte } of edits) bytes.writeUInt8(byte, at);
        expect(typeof readCsr(csrPem(csrDer({ key, attributes: [bytes] })), NODE).ok).toBe('boolean');
      }),
      { numRuns: 2000 },
    );
  });
});

function lengthOf(whole: Buffer): Buffer {
  return whole[1] === 0x82 ? whole.subarray(2, 4) : Buffer.from([0, whole[2] ?? 0]);
}

/** The same request with the count of unused bits in front of its signature set to one. */
function withUnusedBit(request: Buffer): Buffer {
  const bytes = Buffer.from(request);
  // The signature is the last value: a BIT STRING of fewer than 128 bytes whose contents start 00 30.
  bytes.writeUInt8(
    1,
    bytes.lastIndexOf(Buffer.from([0x00, 0x30, request.length - request.lastIndexOf(Buffer.from([0x00, 0x30])) - 3])),
  );
  return bytes;
}

function requestWhere(fits: (request: Buffer) => boolean): Buffer {
  for (;;) {
    const request = csrDer();
    if (fits(request)) return request;
  }
}

/** The same bytes to a lenient decoder: the last character before a single "=" carries two bits that nothing uses. */
function withStrayBit(pem: string): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  return pem.replace(/(.)=\n-/, (_, last: string) => `${alphabet[alphabet.indexOf(last) | 1]}=\n-`);
}
