import { execFileSync } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseBundle } from '../../src/pki/bundle.ts';
import { agentTbs, assembleCertificate, nominalWindow, sha256Hex } from '../../src/pki/certificate.ts';
import { type PkiPaths, previousPath } from '../../src/pki/files.ts';
import { loadPki, type PkiProblem } from '../../src/pki/pki-set.ts';
import { fileSigner } from '../../src/pki/signer.ts';
import { pathsIn, writeSet } from './pki-folder.ts';
import {
  issueAgent,
  issueServer,
  NODE,
  newCa,
  newKey,
  openssl,
  pemOf,
  spkiOf,
  type TestCa,
  temporaryFolder,
} from './support.ts';

const NOW = Date.now();
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A good set of files in a folder; the test then spoils one. */
async function goodSet(folder: string, { caFromMs = NOW, gatewayFromMs = NOW } = {}): Promise<PkiPaths> {
  const paths = pathsIn(folder);
  const ca = await newCa('Test fleet CA', caFromMs);
  await writeSet(paths, { ca, gatewayFromMs });
  writeFileSync(paths.trustBundle, (await newCa('Older CA')).certPem + ca.certPem);
  return paths;
}

/** The problem of a good set after `spoil`. */
async function problemAfter(
  spoil: (paths: PkiPaths) => void | Promise<void>,
): Promise<{ problem: PkiProblem; paths: PkiPaths }> {
  using folder = temporaryFolder();
  const paths = await goodSet(folder.path);
  await spoil(paths);
  const loading = await loadPki(paths, NOW);
  if (loading.ok) throw new Error('the spoilt set was loaded');
  return { problem: loading.problem, paths };
}

describe('a good set', () => {
  test('loaded: contents, digests and end of the gateway certificate', async () => {
    using folder = temporaryFolder();
    const paths = await goodSet(folder.path);
    const loading = await loadPki(paths, NOW);
    if (!loading.ok) throw new Error(loading.problem.message);
    const bundle = readFileSync(paths.trustBundle, 'utf8');
    expect(loading.pki).toMatchObject({
      gatewayCertPem: readFileSync(paths.gatewayCert, 'utf8'),
      gatewayKeyPem: readFileSync(paths.gatewayKey, 'utf8'),
      serving: { notAfterMs: Math.floor(NOW / 1_000) * 1_000 + HOUR_MS },
      bundlePem: bundle,
      bundleSha256: sha256Hex(bundle),
    });
    expect(Object.isFrozen(loading.pki)).toBe(true);
  });

  test('its signer issues what openssl verifies under the bundle', async () => {
    using folder = temporaryFolder();
    const paths = await goodSet(folder.path);
    const loading = await loadPki(paths, NOW);
    if (!loading.ok) throw new Error(loading.problem.message);
    const { signer } = loading.pki;
    const tbs = agentTbs({
      nodeId: NODE,
      spkiDer: spkiOf(newKey()),
      serialHex: '42',
      issuer: signer.issuer,
      ...nominalWindow(Date.now(), 60),
    });
    const file = join(folder.path, 'agent.pem');
    writeFileSync(file, assembleCertificate(tbs, await signer.sign(tbs)).pem);
    expect(await openssl('verify', '-purpose', 'sslclient', '-CAfile', paths.trustBundle, file)).toBe(`${file}: OK\n`);
  });
});

describe('what a set says', () => {
  test('whom it trusts, who issues, what is served and by whom it was issued', async () => {
    using folder = temporaryFolder();
    const paths = await goodSet(folder.path);
    const loading = await loadPki(paths, NOW);
    if (!loading.ok) throw new Error(loading.problem.message);
    const { pki } = loading;
    const fingerprintOf = (pem: string) => sha256Hex(new X509Certificate(pem).raw);
    const issuer = fingerprintOf(readFileSync(paths.caCert, 'utf8'));
    expect(pki.trustedCaSha256s).toEqual([expect.not.stringMatching(issuer), issuer]);
    expect([pki.signer.caSha256, pki.previousSigner, [...pki.signers.keys()]]).toEqual([issuer, undefined, [issuer]]);
    expect(pki.serving).toEqual({
      fingerprintSha256: fingerprintOf(pki.gatewayCertPem),
      issuerCaSha256: issuer,
      notBeforeMs: new X509Certificate(pki.gatewayCertPem).validFromDate.getTime(),
      notAfterMs: Math.floor(NOW / 1_000) * 1_000 + HOUR_MS,
    });
  });
});

describe('an archive of the previous CA', () => {
  /** The previous signer's CA after an archive was made of `previous`; the good set trusts it, or not. */
  async function archived(
    make: (write: (name: 'caCert' | 'caKey', pem: string) => void, previous: TestCa) => void,
    trust = true,
  ) {
    using folder = temporaryFolder();
    const paths = await goodSet(folder.path);
    const previous = await newCa('Previous CA');
    if (trust) writeFileSync(paths.trustBundle, readFileSync(paths.trustBundle, 'utf8') + previous.certPem);
    make((name, pem) => writeFileSync(previousPath(paths[name]), pem, { mode: 0o600 }), previous);
    const loading = await loadPki(paths, NOW);
    if (!loading.ok) throw new Error(loading.problem.message);
    return { signs: loading.pki.previousSigner?.caSha256, previous: previous.signer.caSha256 };
  }

  test('whole and trusted: it can sign', async () => {
    const { signs, previous } = await archived((write, { certPem, keyPem }) => {
      write('caCert', certPem);
      write('caKey', keyPem);
    });
    expect(signs).toBe(previous);
  });

  test.for<[string, Parameters<typeof archived>[0]]>([
    ['without its key', (write, { certPem }) => write('caCert', certPem)],
    ['without its certificate', (write, { keyPem }) => write('caKey', keyPem)],
    [
      'with the key of another',
      (write, { certPem }) => {
        write('caCert', certPem);
        write('caKey', pemOf(newKey()));
      },
    ],
    [
      'with a truncated key',
      (write, { certPem, keyPem }) => {
        write('caCert', certPem);
        write('caKey', keyPem.slice(0, 100));
      },
    ],
  ])('%s: left out, and no error', async ([, make]) => expect((await archived(make)).signs).toBeUndefined());

  test('of a CA that is not trusted any more: left out, and no error', async () => {
    const { signs } = await archived((write, { certPem, keyPem }) => {
      write('caCert', certPem);
      write('caKey', keyPem);
    }, false);
    expect(signs).toBeUndefined();
  });
});

test("an agent's certificate in the place of the gateway's: pki_gateway_unsuitable", async () => {
  const { problem, paths } = await problemAfter(async (set) => {
    const [certPem, keyPem] = [readFileSync(set.caCert, 'utf8'), readFileSync(set.caKey, 'utf8')];
    const key = newKey();
    writeFileSync(
      set.gatewayCert,
      (await issueAgent({ certPem, keyPem, signer: fileSigner(certPem, keyPem) }, key)).pem,
    );
    writeFileSync(set.gatewayKey, pemOf(key));
  });
  expect(problem).toMatchObject({ code: 'pki_gateway_unsuitable', path: paths.gatewayCert });
});

describe('key files', () => {
  test.each([0o640, 0o604, 0o660, 0o602, 0o644])('mode %o: refused with the line that repairs it', async (mode) => {
    const { problem, paths } = await problemAfter(({ caKey }) => chmodSync(caKey, mode));
    expect(problem).toEqual({
      code: 'pki_key_permissions',
      path: paths.caKey,
      message: `${paths.caKey}: a private key that group or others may read or write (mode 0${mode.toString(8)}); run: chmod 0600 ${paths.caKey}`,
    });
  });

  test("the gateway's key readable by all: refused", async () => {
    const { problem, paths } = await problemAfter(({ gatewayKey }) => chmodSync(gatewayKey, 0o644));
    expect(problem).toMatchObject({ code: 'pki_key_permissions', path: paths.gatewayKey });
  });

  test.each([0o600, 0o400])('mode %o: accepted', async (mode) => {
    using folder = temporaryFolder();
    const paths = await goodSet(folder.path);
    chmodSync(paths.caKey, mode);
    expect((await loadPki(paths, NOW)).ok).toBe(true);
  });
});

describe('files that cannot be used', () => {
  const names = ['gatewayCert', 'gatewayKey', 'trustBundle', 'caCert', 'caKey'] as const;

  test.each(names)('%s missing: pki_file_unreadable', async (name) => {
    const { problem, paths } = await problemAfter((set) => rmSync(set[name]));
    expect(problem).toEqual({
      code: 'pki_file_unreadable',
      path: paths[name],
      message: `${paths[name]}: it cannot be read (ENOENT)`,
    });
  });

  test.each(names)('%s truncated: pki_file_malformed, and no byte of it in the message', async (name) => {
    const { problem, paths } = await problemAfter((set) => {
      const text = readFileSync(set[name], 'utf8');
      writeFileSync(set[name], text.slice(0, text.length - 60));
    });
    expect(problem).toMatchObject({ code: 'pki_file_malformed', path: paths[name] });
    expect(problem.message).toMatch(/: not a (PEM|list of PEM) [a-zA-Z ]+$/);
  });

  test.each(names)('%s empty: pki_file_malformed', async (name) => {
    const { problem, paths } = await problemAfter((set) => writeFileSync(set[name], ''));
    expect(problem).toMatchObject({ code: 'pki_file_malformed', path: paths[name] });
  });

  test('a folder in the place of a file: pki_file_unreadable', async () => {
    const { problem } = await problemAfter((set) => {
      rmSync(set.caCert);
      mkdirSync(set.caCert);
    });
    expect(problem).toMatchObject({
      code: 'pki_file_unreadable',
      message: expect.stringContaining('not a regular file'),
    });
  });

  test('a named pipe in the place of a file: refused, not waited for', async () => {
    const { problem } = await problemAfter((set) => {
      rmSync(set.caCert);
      execFileSync('mkfifo', [set.caCert]);
    });
    expect(problem).toMatchObject({
      code: 'pki_file_unreadable',
      message: expect.stringContaining('not a regular file'),
    });
  });

  test('a file of more than 1 MiB: pki_file_unreadable', async () => {
    const { problem } = await problemAfter((set) => writeFileSync(set.trustBundle, Buffer.alloc(1024 * 1024 + 1, 32)));
    expect(problem).toMatchObject({
      code: 'pki_file_unreadable',
      message: expect.stringContaining('larger than 1 MiB'),
    });
  });
});

describe('files that do not belong together', () => {
  test("another CA's key: pki_ca_key_mismatch", async () => {
    const { problem, paths } = await problemAfter((set) => writeFileSync(set.caKey, pemOf(newKey())));
    expect(problem).toMatchObject({ code: 'pki_ca_key_mismatch', path: paths.caKey });
  });

  test('a key of a kind that cannot sign: pki_ca_key_mismatch', async () => {
    const { problem } = await problemAfter(async (set) =>
      writeFileSync(set.caKey, await openssl('genpkey', '-algorithm', 'X25519')),
    );
    expect(problem.code).toBe('pki_ca_key_mismatch');
  });

  test('a CA that is not in the bundle: pki_ca_not_in_bundle', async () => {
    const { problem, paths } = await problemAfter(async (set) =>
      writeFileSync(set.trustBundle, (await newCa()).certPem),
    );
    expect(problem).toMatchObject({ code: 'pki_ca_not_in_bundle', path: paths.trustBundle });
  });

  test("another gateway's key: pki_gateway_key_mismatch", async () => {
    const { problem, paths } = await problemAfter((set) => writeFileSync(set.gatewayKey, pemOf(newKey())));
    expect(problem).toMatchObject({ code: 'pki_gateway_key_mismatch', path: paths.gatewayKey });
  });

  test('the certificate of no CA in the place of the CA: pki_ca_unsuitable', async () => {
    const { problem, paths } = await problemAfter((set) => writeFileSync(set.caCert, readFileSync(set.gatewayCert)));
    expect(problem).toMatchObject({ code: 'pki_ca_unsuitable', path: paths.caCert });
  });

  test('a CA with an RSA key: pki_ca_unsuitable', async () => {
    const { problem } = await problemAfter(async (set) => {
      await openssl(
        'req',
        '-x509',
        '-newkey',
        'rsa:2048',
        '-nodes',
        '-subj',
        '/CN=RSA',
        '-keyout',
        set.caKey,
        '-out',
        set.caCert,
      );
    });
    expect(problem.code).toBe('pki_ca_unsuitable');
  });

  test('two sets half exchanged: refused', async () => {
    const other = await newCa();
    const { problem } = await problemAfter((set) => writeFileSync(set.caCert, other.certPem));
    expect(problem.code).toBe('pki_ca_key_mismatch');
  });
});

describe('certificates that nobody would accept', () => {
  const problemOf = async (validity: Parameters<typeof goodSet>[1]) => {
    using folder = temporaryFolder();
    const paths = await goodSet(folder.path, validity);
    const loading = await loadPki(paths, NOW);
    if (loading.ok) throw new Error('the set was loaded');
    const { code, path } = loading.problem;
    return [code, Object.entries(paths).find(([, file]) => file === path)?.[0]];
  };

  test('the CA has expired: refused', async () =>
    expect(await problemOf({ caFromMs: NOW - DAY_MS })).toEqual(['pki_certificate_expired', 'caCert']));

  test('the CA is not valid yet: refused', async () =>
    expect(await problemOf({ caFromMs: NOW + DAY_MS })).toEqual(['pki_certificate_not_yet_valid', 'caCert']));

  test('the gateway has expired: refused', async () =>
    expect(await problemOf({ gatewayFromMs: NOW - HOUR_MS })).toEqual(['pki_certificate_expired', 'gatewayCert']));

  test('the gateway is not valid yet: refused', async () =>
    expect(await problemOf({ gatewayFromMs: NOW + HOUR_MS })).toEqual([
      'pki_certificate_not_yet_valid',
      'gatewayCert',
    ]));

  test('in the last second of the gateway: loaded', async () => {
    using folder = temporaryFolder();
    const paths = await goodSet(folder.path, { gatewayFromMs: NOW - HOUR_MS + 2_000 });
    expect((await loadPki(paths, NOW)).ok).toBe(true);
  });

  test('the gateway was issued by a CA that is not in the bundle: refused', async () => {
    const { problem, paths } = await problemAfter(async (set) => {
      // The same name as the CA of the bundle, but another key.
      const stranger = await newCa();
      const key = newKey();
      writeFileSync(set.gatewayCert, (await issueServer(stranger, key)).pem);
      writeFileSync(set.gatewayKey, pemOf(key));
    });
    expect(problem).toMatchObject({ code: 'pki_gateway_issuer_unknown', path: paths.gatewayCert });
  });
});

describe('a trust bundle', () => {
  test('text between the certificates: ignored', async () => {
    const [one, two] = [await newCa('one'), await newCa('two')];
    expect(
      parseBundle(`# old\n${one.certPem}\n# new\n${two.certPem}`)?.map((certificate) => certificate.subject),
    ).toEqual(['CN=one', 'CN=two']);
  });

  test('cut inside its last certificate: undefined, not the certificates before it', async () => {
    const [one, two] = [await newCa(), await newCa()];
    expect(parseBundle(one.certPem + two.certPem.slice(0, 200))).toBeUndefined();
  });

  test('an agent certificate among the CAs: undefined', async () => {
    const ca = await newCa();
    expect(parseBundle(ca.certPem + (await issueAgent(ca, newKey())).pem)).toBeUndefined();
  });

  test('a private key among the CAs: undefined', async () => {
    const ca = await newCa();
    expect(parseBundle(ca.certPem + ca.keyPem)).toBeUndefined();
  });
});
