import { ECDH, generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readCsr } from '../../src/pki/csr.ts';
import { bitString, der, oid, sequence, TAG } from '../../src/pki/der.ts';
import {
  attributeOf,
  type CsrParts,
  commonName,
  csrDer,
  csrPem,
  dnsSan,
  extensionOf,
  extensionRequest,
  NODE,
  nameAttribute,
  newKey,
  openssl,
  pemOf,
  spkiOf,
  subjectOf,
  temporaryFolder,
} from './support.ts';

const read = (parts: CsrParts) => readCsr(csrPem(csrDer(parts)), NODE);
const withExtensions = (...extensions: Buffer[]) => read({ attributes: [extensionRequest(...extensions)] });
const refused = (code: string) => ({ ok: false, code });
const printable = (text: string): Buffer => der(TAG.printableString, Buffer.from(text));
const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
const YES = der(TAG.boolean, Buffer.from([0xff]));
const CA_TRUE = sequence(YES);

/** A request made by the openssl CLI from a `req` configuration's extension lines and arguments. */
async function opensslCsr(keyPem: string, subject: string, ...args: string[]): Promise<string> {
  using folder = temporaryFolder();
  const keyFile = join(folder.path, 'key.pem');
  const csrFile = join(folder.path, 'csr.pem');
  writeFileSync(keyFile, keyPem, { mode: 0o600 });
  await openssl('req', '-new', '-key', keyFile, '-subj', subject, '-utf8', '-out', csrFile, ...args);
  return readFileSync(csrFile, 'utf8');
}

describe('an honest request', () => {
  test('made by openssl with every harmless extension: its public key is returned', async () => {
    const key = newKey();
    const extensions = [
      '-addext',
      `subjectAltName=DNS:${NODE}`,
      '-addext',
      'basicConstraints=critical,CA:FALSE',
      '-addext',
      'keyUsage=critical,digitalSignature',
      '-addext',
      'extendedKeyUsage=clientAuth',
    ];
    expect(readCsr(await opensslCsr(pemOf(key), `/CN=${NODE}`, ...extensions), NODE)).toEqual({
      ok: true,
      spkiDer: spkiOf(key),
    });
  });

  test('made by openssl without any extension: its public key is returned', async () => {
    const key = newKey();
    expect(readCsr(await opensslCsr(pemOf(key), `/CN=${NODE}`), NODE)).toEqual({ ok: true, spkiDer: spkiOf(key) });
  });

  test('built here: openssl accepts its signature and sees the same subject', async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'csr.pem');
    writeFileSync(file, csrPem(csrDer()));
    expect(await openssl('req', '-in', file, '-verify', '-noout', '-subject')).toBe(`subject=CN = ${NODE}\n`);
  });

  test('common name as PrintableString: accepted', () => {
    expect(read({ subject: subjectOf([commonName(printable(NODE))]) }).ok).toBe(true);
  });

  test('CRLF line ends and space around the block: accepted', () => {
    expect(readCsr(`\n ${csrPem(csrDer()).replaceAll('\n', '\r\n')}\n`, NODE).ok).toBe(true);
  });

  test('an unknown extension that is not critical, and another attribute: ignored', () => {
    const challenge = attributeOf('1.2.840.113549.1.9.7', printable('x'));
    expect(
      read({ attributes: [challenge, extensionRequest(dnsSan(NODE), extensionOf('1.2.3.4', sequence()))] }).ok,
    ).toBe(true);
  });
});

describe('a key of another kind', () => {
  test('RSA: csr_key_unsupported', async () => {
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    expect(readCsr(await opensslCsr(pemOf(privateKey), `/CN=${NODE}`), NODE)).toEqual(refused('csr_key_unsupported'));
  });

  test.each(['P-384', 'secp256k1'])('%s: csr_key_unsupported', (curve) => {
    expect(read({ key: newKey(curve) })).toEqual(refused('csr_key_unsupported'));
  });

  test('compressed point: csr_key_unsupported', () => {
    const key = newKey();
    const point = ECDH.convertKey(spkiOf(key).subarray(-65), 'prime256v1', undefined, undefined, 'compressed');
    const algorithm = sequence(oid('1.2.840.10045.2.1'), oid('1.2.840.10045.3.1.7'));
    const spki = sequence(algorithm, bitString(Buffer.from(point)));
    expect(read({ key, spki })).toEqual(refused('csr_key_unsupported'));
  });

  test('explicit curve parameters: csr_key_unsupported', async () => {
    using folder = temporaryFolder();
    const keyFile = join(folder.path, 'key.pem');
    await openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-param_enc', 'explicit', '-out', keyFile);
    expect(readCsr(await opensslCsr(readFileSync(keyFile, 'utf8'), `/CN=${NODE}`), NODE)).toEqual(
      refused('csr_key_unsupported'),
    );
  });

  test('a point that is not on the curve: csr_key_unsupported', () => {
    const spki = spkiOf(newKey());
    spki.writeUInt8((spki.at(-1) ?? 0) ^ 1, spki.length - 1);
    expect(read({ spki })).toEqual(refused('csr_key_unsupported'));
  });

  test('signed with SHA-384: csr_algorithm_unsupported', () => {
    expect(read({ algorithm: sequence(oid('1.2.840.10045.4.3.3')), hash: 'sha384' })).toEqual(
      refused('csr_algorithm_unsupported'),
    );
  });

  test('algorithm with NULL parameters: csr_algorithm_unsupported', () => {
    const algorithm = sequence(oid('1.2.840.10045.4.3.2'), Buffer.from([5, 0]));
    expect(read({ algorithm })).toEqual(refused('csr_algorithm_unsupported'));
  });
});

describe('a signature that proves nothing', () => {
  test("another key's: csr_signature_invalid", () => {
    expect(read({ spki: spkiOf(newKey()) })).toEqual(refused('csr_signature_invalid'));
  });

  test('one bit changed: csr_signature_invalid', () => {
    const bytes = csrDer();
    bytes.writeUInt8((bytes.at(-1) ?? 0) ^ 1, bytes.length - 1);
    expect(readCsr(csrPem(bytes), NODE)).toEqual(refused('csr_signature_invalid'));
  });

  test.each([
    ['empty', Buffer.alloc(0)],
    ['r and s are zero', sequence(der(TAG.integer, Buffer.from([0])), der(TAG.integer, Buffer.from([0])))],
    ['random', Buffer.alloc(70, 0xa5)],
  ])('%s: csr_signature_invalid', (_, signature) =>
    expect(read({ signature })).toEqual(refused('csr_signature_invalid')),
  );
});

describe('a subject that is not exactly the node id', () => {
  test.each<[string, Buffer]>([
    ['another node', subjectOf([commonName('app-fsn1-other')])],
    ['other case', subjectOf([commonName(NODE.toUpperCase())])],
    ['empty', subjectOf()],
    ['two common names in two RDNs', subjectOf([commonName(NODE)], [commonName(NODE)])],
    ['two common names in one RDN', subjectOf([commonName(NODE), commonName(NODE)])],
    [
      'a third part in the name',
      subjectOf([sequence(oid('2.5.4.3'), der(TAG.utf8String, Buffer.from(NODE)), sequence())]),
    ],
    ['an organisation besides', subjectOf([commonName(NODE)], [nameAttribute('2.5.4.10', 'Pushleft')])],
    ['an organisation instead', subjectOf([nameAttribute('2.5.4.10', NODE)])],
    ['NUL at the end', subjectOf([commonName(`${NODE}\0`)])],
    ['NUL and a second name', subjectOf([commonName(`${NODE}\0.evil.example`)])],
    ['IA5String', subjectOf([commonName(der(0x16, Buffer.from(NODE)))])],
    ['BMPString', subjectOf([commonName(der(0x1e, Buffer.from(NODE, 'utf16le').swap16()))])],
  ])('%s: csr_subject_mismatch', (_, subject) => expect(read({ subject })).toEqual(refused('csr_subject_mismatch')));

  test('a node id that no certificate can hold, in both places: csr_subject_mismatch', () => {
    const subject = subjectOf([commonName('a b')]);
    expect(readCsr(csrPem(csrDer({ subject, attributes: [] })), 'a b')).toEqual(refused('csr_subject_mismatch'));
  });
});

describe('a subject alternative name that is not the node id', () => {
  test.each([
    `DNS:${NODE},DNS:other`,
    'DNS:*',
    `DNS:*.${NODE}`,
    `DNS:${NODE},IP:127.0.0.1`,
    `DNS:${NODE},email:a@b.example`,
    'URI:https://x.example',
    'dirName:d',
  ])('openssl %s: csr_san_mismatch', async (names) => {
    using folder = temporaryFolder();
    const config = join(folder.path, 'req.cnf');
    writeFileSync(
      config,
      `[req]\ndistinguished_name=n\nreq_extensions=e\n[n]\n[e]\nsubjectAltName=${names}\n[d]\nCN=${NODE}\n`,
    );
    const csr = await opensslCsr(pemOf(newKey()), `/CN=${NODE}`, '-config', config);
    expect(readCsr(csr, NODE)).toEqual(refused('csr_san_mismatch'));
  });

  test('NUL in a DNS name: csr_san_mismatch', () =>
    expect(withExtensions(dnsSan(`${NODE}\0`))).toEqual(refused('csr_san_mismatch')));
  test('no name at all: csr_malformed', () => expect(withExtensions(dnsSan())).toEqual(refused('csr_malformed')));
});

describe('a request for the rights of a CA', () => {
  test('openssl CA:TRUE: csr_requests_ca', async () => {
    const csr = await opensslCsr(pemOf(newKey()), `/CN=${NODE}`, '-addext', 'basicConstraints=CA:TRUE,pathlen:0');
    expect(readCsr(csr, NODE)).toEqual(refused('csr_requests_ca'));
  });

  test.each(['keyCertSign', 'cRLSign', 'digitalSignature,keyCertSign'])(
    'openssl keyUsage %s: csr_requests_ca',
    async (usage) => {
      const csr = await opensslCsr(pemOf(newKey()), `/CN=${NODE}`, '-addext', `keyUsage=${usage}`);
      expect(readCsr(csr, NODE)).toEqual(refused('csr_requests_ca'));
    },
  );

  test('CA:FALSE spelled out, which DER forbids: csr_malformed', () => {
    const value = sequence(der(TAG.boolean, Buffer.from([0])));
    expect(withExtensions(extensionOf(BASIC_CONSTRAINTS, value))).toEqual(refused('csr_malformed'));
  });

  test('CA:TRUE as the BER truth 01: csr_malformed', () => {
    const value = sequence(der(TAG.boolean, Buffer.from([1])));
    expect(withExtensions(extensionOf(BASIC_CONSTRAINTS, value))).toEqual(refused('csr_malformed'));
  });

  test('key usage that is no BIT STRING: csr_malformed', () => {
    expect(withExtensions(extensionOf(KEY_USAGE, CA_TRUE))).toEqual(refused('csr_malformed'));
  });
});

describe('extensions and attributes', () => {
  test('an extension twice: csr_duplicate_extension', () => {
    expect(withExtensions(dnsSan(NODE), dnsSan(NODE))).toEqual(refused('csr_duplicate_extension'));
  });

  test('an unknown extension twice: csr_duplicate_extension', () => {
    const unknown = extensionOf('1.2.3.4', sequence());
    expect(withExtensions(unknown, unknown)).toEqual(refused('csr_duplicate_extension'));
  });

  test('the extension request twice: csr_duplicate_attribute', () => {
    const attribute = extensionRequest(dnsSan(NODE));
    expect(read({ attributes: [attribute, attribute] })).toEqual(refused('csr_duplicate_attribute'));
  });

  test('another attribute twice: csr_duplicate_attribute', () => {
    const attribute = attributeOf('1.2.840.113549.1.9.7', printable('x'));
    expect(read({ attributes: [attribute, attribute] })).toEqual(refused('csr_duplicate_attribute'));
  });

  test('an unknown critical extension: csr_extension_unsupported', () => {
    expect(withExtensions(extensionOf('1.2.3.4', sequence(), true))).toEqual(refused('csr_extension_unsupported'));
  });

  test.each<[string, Buffer]>([
    ['an extension request without a value', attributeOf('1.2.840.113549.1.9.14')],
    [
      'an extension request with two values',
      attributeOf('1.2.840.113549.1.9.14', sequence(dnsSan(NODE)), sequence(dnsSan(NODE))),
    ],
    ['an attribute of three parts', sequence(oid('1.2.3'), der(TAG.set), der(TAG.set))],
    [
      'an extension of four parts',
      extensionRequest(sequence(oid('1.2.3'), YES, der(TAG.octetString), der(TAG.octetString))),
    ],
    [
      'an extension of four parts, the value last',
      extensionRequest(sequence(oid('1.2.3'), YES, YES, der(TAG.octetString))),
    ],
    ['a key usage without bits', extensionRequest(extensionOf(KEY_USAGE, bitString(Buffer.alloc(0))))],
    ['an attribute that is no sequence', printable('x')],
    ['an extension without a value', extensionRequest(sequence(oid('2.5.29.17')))],
    [
      'a critical flag that is FALSE',
      extensionRequest(sequence(oid('1.2.3'), der(TAG.boolean, Buffer.from([0])), der(TAG.octetString))),
    ],
    [
      'trailing bytes inside an extension',
      extensionRequest(extensionOf(BASIC_CONSTRAINTS, Buffer.from('30000500', 'hex'))),
    ],
  ])('%s: csr_malformed', (_, attribute) =>
    expect(read({ attributes: [attribute] })).toEqual(refused('csr_malformed')),
  );
});
