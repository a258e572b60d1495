import { createHash, randomBytes, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  type AgentCertificateFields,
  agentTbs,
  assembleCertificate,
  BACKDATE_MS,
  caTbs,
  newSerial,
  nominalWindow,
  serverTbs,
  sha256Hex,
} from '../../src/pki/certificate.ts';
import { parseDer } from '../../src/pki/der.ts';
import {
  issueAgent,
  issueServer,
  NODE,
  newCa,
  newKey,
  openssl,
  spkiOf,
  type TestCa,
  temporaryFolder,
} from './support.ts';

const T0 = Date.UTC(2026, 10, 30, 12, 0, 0);

let ca: TestCa;
beforeAll(async () => {
  ca = await newCa('Test fleet CA', T0 - 3_600_000);
});

/** What openssl says about a PEM certificate, with the given output options. */
async function x509(pem: string, ...args: string[]): Promise<string> {
  using folder = temporaryFolder();
  const file = join(folder.path, 'certificate.pem');
  writeFileSync(file, pem);
  return await openssl('x509', '-in', file, '-noout', ...args);
}

/** openssl's verdict on a chain for a purpose, at a time. */
async function verifyChain(caPem: string, pem: string, purpose: string, atMs: number): Promise<string> {
  using folder = temporaryFolder();
  const [caFile, file] = [join(folder.path, 'ca.pem'), join(folder.path, 'certificate.pem')];
  writeFileSync(caFile, caPem);
  writeFileSync(file, pem);
  const arguments_ = [
    '-x509_strict',
    '-check_ss_sig',
    '-purpose',
    purpose,
    '-attime',
    String(atMs / 1000),
    '-CAfile',
    caFile,
    file,
  ];
  return (await openssl('verify', ...arguments_)).replace(file, 'certificate.pem');
}

function agentFields(overrides: Partial<AgentCertificateFields> = {}): AgentCertificateFields {
  const serialHex = '0100112233445566778899aabbccddeeff';
  return {
    nodeId: NODE,
    spkiDer: spkiOf(newKey()),
    serialHex,
    issuer: ca.signer.issuer,
    ...nominalWindow(T0, 86_400),
    ...overrides,
  };
}

const extensions =
  'basicConstraints,keyUsage,extendedKeyUsage,subjectAltName,subjectKeyIdentifier,authorityKeyIdentifier';

describe('an agent certificate', () => {
  test('openssl lists exactly the extensions of a TLS client', async () => {
    const key = newKey();
    const { pem } = await issueAgent(ca, key, T0);
    const keyId = (bytes: Buffer) => (bytes.toString('hex').toUpperCase().match(/../g) ?? []).join(':');
    const own = createHash('sha1').update(spkiOf(key).subarray(-65)).digest(); // RFC 5280 section 4.2.1.2, method 1
    expect(
      (await x509(pem, '-ext', extensions))
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    ).toEqual([
      'X509v3 Basic Constraints: critical',
      'CA:FALSE',
      'X509v3 Key Usage: critical',
      'Digital Signature',
      'X509v3 Extended Key Usage:',
      'TLS Web Client Authentication',
      'X509v3 Subject Alternative Name:',
      `DNS:${NODE}`,
      'X509v3 Subject Key Identifier:',
      keyId(own),
      'X509v3 Authority Key Identifier:',
      keyId(ca.signer.issuer.keyId),
    ]);
    expect((await x509(pem, '-text')).match(/X509v3 [^:]+:/g)).toHaveLength(7); // the heading "X509v3 extensions:" and six
  });

  test('openssl verifies the chain for a TLS client and for no TLS server', async () => {
    const { pem } = await issueAgent(ca, newKey(), T0);
    expect(await verifyChain(ca.certPem, pem, 'sslclient', T0)).toBe('certificate.pem: OK\n');
    await expect(verifyChain(ca.certPem, pem, 'sslserver', T0)).rejects.toThrow('unsuitable certificate purpose');
  });

  test('openssl verifies it under its own CA and under no other', async () => {
    const other = await newCa('Test fleet CA', T0);
    const { pem } = await issueAgent(ca, newKey(), T0);
    await expect(verifyChain(other.certPem, pem, 'sslclient', T0)).rejects.toThrow(
      'unable to get local issuer certificate',
    );
  });

  test('it starts 60 s before its nominal window and ends with it', async () => {
    expect(BACKDATE_MS).toBe(60_000);
    const { pem } = await issueAgent(ca, newKey(), T0);
    expect(await x509(pem, '-dates', '-subject', '-issuer')).toBe(
      `notBefore=Nov 30 11:59:00 2026 GMT\nnotAfter=Nov 30 13:00:00 2026 GMT\nsubject=CN = ${NODE}\nissuer=CN = Test fleet CA\n`,
    );
  });

  test('its fingerprint and serial are what openssl and node:crypto read', async () => {
    const certificate = await issueAgent(ca, newKey(), T0);
    const read = new X509Certificate(certificate.pem);
    expect(read.raw).toEqual(certificate.der);
    expect(read.fingerprint256.replaceAll(':', '').toLowerCase()).toBe(certificate.fingerprintSha256);
    expect((await x509(certificate.pem, '-fingerprint', '-sha256')).trim()).toBe(
      `sha256 Fingerprint=${read.fingerprint256}`,
    );
    expect(read.serialNumber).toMatch(/^01[0-9A-F]{32}$/);
  });

  test('openssl finds nothing odd in its DER', async () => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'certificate.der');
    const { der } = await issueAgent(ca, newKey(), T0);
    writeFileSync(file, der);
    const parsed = await openssl('asn1parse', '-inform', 'DER', '-in', file);
    expect(parsed.split('\n')[0]).toContain(`l= ${der.length - 4} cons: SEQUENCE`);
    expect(parseDer(der.toString('latin1'))).toBeDefined();
  });

  test('same fields: same bytes', () => {
    const fields = agentFields();
    expect(sha256Hex(agentTbs(fields))).toBe(sha256Hex(agentTbs({ ...fields, spkiDer: Buffer.from(fields.spkiDer) })));
  });

  test('fixed fields: the bytes of the first release, so that an upgrade in the middle of an issuance does not matter', () => {
    const point =
      '6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5';
    const spkiDer = Buffer.from(`3059301306072a8648ce3d020106082a8648ce3d03010703420004${point}`, 'hex');
    const nameDer = Buffer.from('300d310b300906035504030c024341', 'hex');
    const issuer = { nameDer, keyId: Buffer.alloc(20, 7) };
    expect(agentTbs(agentFields({ spkiDer, issuer })).toString('hex')).toMatchInlineSnapshot(
      `"3082015ba00302010202110100112233445566778899aabbccddeeff300a06082a8648ce3d040302300d310b300906035504030c024341301e170d3236313133303131353930305a170d3236313230313132303030305a30183116301406035504030c0d6170702d66736e312d376b326d3059301306072a8648ce3d020106082a8648ce3d030107034200046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c2964fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5a3819030818d300c0603551d130101ff04023000300e0603551d0f0101ff04040302078030130603551d25040c300a06082b0601050507030230180603551d110411300f820d6170702d66736e312d376b326d301d0603551d0e04160414b467a3999eb5efa671de0032f08a9c9e5efda0e1301f0603551d230418301680140707070707070707070707070707070707070707"`,
    );
  });

  test.each<[string, Partial<AgentCertificateFields>]>([
    ['node id', { nodeId: 'app-fsn1-other' }],
    ['serial', { serialHex: '0100112233445566778899aabbccddee00' }],
    ['start', { notBeforeMs: T0 - 1000 }],
    ['end', { notAfterMs: T0 + 1000 }],
    ['key', { spkiDer: spkiOf(newKey()) }],
  ])('another %s: other bytes', (_, change) => {
    const fields = agentFields();
    expect(agentTbs({ ...fields, ...change }).equals(agentTbs(fields))).toBe(false);
  });

  test.each<[string, Partial<AgentCertificateFields>, string]>([
    ['an empty node id', { nodeId: '' }, 'a node id in a certificate'],
    ['a wildcard', { nodeId: '*' }, 'a node id in a certificate'],
    ['a NUL', { nodeId: 'a\0b' }, 'a node id in a certificate'],
    ['a node id of 65 characters', { nodeId: `${'a'.repeat(40)}.${'b'.repeat(24)}` }, 'a node id in a certificate'],
    ['a zero serial', { serialHex: '00' }, 'hex digits of a positive integer'],
    ['a serial in upper case', { serialHex: 'AB' }, 'hex digits of a positive integer'],
    ['a serial of 21 octets', { serialHex: '01'.repeat(21) }, 'at most 20 octets'],
    ['half seconds', { notBeforeMs: T0 + 500 }, 'a whole second'],
    ['an end at the start', { notAfterMs: T0 }, 'ends after it starts'],
    ['no time', { notAfterMs: Number.NaN }, 'a whole second'],
    ['a key with a byte behind it', { spkiDer: Buffer.concat([spkiOf(newKey()), Buffer.from([0])]) }, 'a P-256 key'],
    ['the key of another curve', { spkiDer: spkiOf(newKey('P-384')) }, 'a P-256 key'],
  ])('%s: thrown', (_, change, message) => expect(() => agentTbs(agentFields(change))).toThrow(message));
});

describe('times', () => {
  test.each([
    ['the last second of UTCTime', Date.UTC(2049, 11, 31, 23, 59, 59), 'UTCTIME           :491231235959Z'],
    ['the first second of GeneralizedTime', Date.UTC(2050, 0, 1), 'GENERALIZEDTIME   :20500101000000Z'],
  ])('%s', async (_, notAfterMs, expected) => {
    using folder = temporaryFolder();
    const file = join(folder.path, 'tbs.der');
    writeFileSync(file, agentTbs(agentFields({ notAfterMs })));
    expect(await openssl('asn1parse', '-inform', 'DER', '-in', file)).toContain(expected);
  });

  test('nominal window: whole seconds', () => {
    expect(nominalWindow(T0 + 999, 60)).toEqual({ notBeforeMs: T0, notAfterMs: T0 + 60_000 });
  });
});

describe('a server certificate', () => {
  test('openssl verifies it for a TLS server and for no TLS client, with its names and addresses', async () => {
    const { pem } = await issueServer(ca, newKey(), T0);
    expect(await verifyChain(ca.certPem, pem, 'sslserver', T0)).toBe('certificate.pem: OK\n');
    await expect(verifyChain(ca.certPem, pem, 'sslclient', T0)).rejects.toThrow('unsuitable certificate purpose');
    const names = await x509(pem, '-ext', 'subjectAltName');
    expect(names).toContain(
      'DNS:localhost, DNS:gateway.example.org, IP Address:127.0.0.1, IP Address:2001:DB8:0:0:0:0:0:7',
    );
  });

  test.each([
    ['::', '0:0:0:0:0:0:0:0'],
    ['::1', '0:0:0:0:0:0:0:1'],
    ['fe80::', 'FE80:0:0:0:0:0:0:0'],
    ['1:2:3:4:5:6:7:8', '1:2:3:4:5:6:7:8'],
    ['::ffff:192.0.2.1', '0:0:0:0:0:FFFF:C000:201'],
  ])('IPv6 address %s: node:crypto reads %s', async (address, expected) => {
    const tbs = serverTbs({ ...agentFields(), commonName: 'gateway', dnsNames: [], ipAddresses: [address] });
    expect(new X509Certificate(assembleCertificate(tbs, await ca.signer.sign(tbs)).pem).subjectAltName).toBe(
      `IP Address:${expected}`,
    );
  });

  test.each<[string, string[], string[]]>([
    ['no name', [], []],
    ['a wildcard', ['*.example.org'], []],
    ['a name with a NUL', ['a\0b'], []],
    ['an address with a zone', [], ['fe80::1%eth0']],
    ['no address', [], ['localhost']],
  ])('%s: thrown', (_, dnsNames, ipAddresses) => {
    expect(() => serverTbs({ ...agentFields(), commonName: 'gateway', dnsNames, ipAddresses })).toThrow(RangeError);
  });
});

describe('a CA certificate', () => {
  test('openssl lists the rights of a CA that signs end entities alone', async () => {
    const text = await x509(ca.certPem, '-ext', 'basicConstraints,keyUsage');
    expect(
      text
        .split('\n')
        .map((line) => line.trim())
        .filter((line) => line !== ''),
    ).toEqual([
      'X509v3 Basic Constraints: critical',
      'CA:TRUE, pathlen:0',
      'X509v3 Key Usage: critical',
      'Certificate Sign, CRL Sign',
    ]);
    expect(await verifyChain(ca.certPem, ca.certPem, 'crlsign', T0)).toBe('certificate.pem: OK\n');
  });

  test.each(['', 'x'.repeat(65), 'a\nb'])('common name %j: thrown', (commonName) => {
    expect(() => caTbs({ ...agentFields(), commonName })).toThrow(RangeError);
  });
});

describe('serial numbers', () => {
  test('500 serials: distinct, positive, 17 octets of which 16 are random', () => {
    const serials = Array.from({ length: 500 }, () => newSerial(randomBytes));
    expect(new Set(serials).size).toBe(500);
    expect(serials.every((serial) => /^01[0-9a-f]{32}$/.test(serial))).toBe(true);
    const ones = Array.from(
      { length: 128 },
      (_, bit) => serials.filter((s) => (BigInt(`0x${s}`) >> BigInt(bit)) & 1n).length,
    );
    // Each bit is set in 250 of 500, give or take 7 standard deviations of 11.2: wrong by chance once in 3 thousand million runs.
    expect(ones.filter((count) => count < 172 || count > 328)).toEqual([]);
  });
});
