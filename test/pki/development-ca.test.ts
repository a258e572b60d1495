import { X509Certificate } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ensureDevelopmentPki } from '../../src/pki/development-ca.ts';
import { loadPki } from '../../src/pki/pki-set.ts';
import { openssl, temporaryFolder } from './support.ts';

const now = Date.now();
const options = { dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'], now };
/** In the order in which they are written. */
const FILES = ['ca.key', 'ca.pem', 'trust-bundle.pem', 'gateway.key', 'gateway.pem'];

const contentsOf = (dir: string) =>
  Object.fromEntries(readdirSync(dir).map((name) => [name, readFileSync(join(dir, name), 'utf8')]));

describe('a development PKI', () => {
  test('empty folder: a set that loads, folder 0700, keys 0600', async () => {
    using folder = temporaryFolder();
    const dir = join(folder.path, 'state', 'pki');
    const paths = await ensureDevelopmentPki(dir, options);
    expect((await loadPki(paths, now)).ok).toBe(true);
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    expect(
      Object.fromEntries(readdirSync(dir).map((name) => [name, (statSync(join(dir, name)).mode & 0o777).toString(8)])),
    ).toEqual({
      'ca.key': '600',
      'ca.pem': '644',
      'gateway.key': '600',
      'gateway.pem': '644',
      'trust-bundle.pem': '644',
    });
    expect(
      await openssl(
        'verify',
        '-x509_strict',
        '-purpose',
        'sslserver',
        '-verify_ip',
        '127.0.0.1',
        '-CAfile',
        paths.trustBundle,
        paths.gatewayCert,
      ),
    ).toBe(`${paths.gatewayCert}: OK\n`);
  });

  test('run again: nothing changes', async () => {
    using folder = temporaryFolder();
    await ensureDevelopmentPki(folder.path, options);
    const before = contentsOf(folder.path);
    await ensureDevelopmentPki(folder.path, options);
    expect(contentsOf(folder.path)).toEqual(before);
  });

  test.each(FILES.map((name, written) => [written, name]))(
    'cut after %i files, while %s is written: completed, nothing made twice',
    async (written, name) => {
      using folder = temporaryFolder();
      await ensureDevelopmentPki(folder.path, options);
      for (const later of FILES.slice(written)) rmSync(join(folder.path, later));
      const before = contentsOf(folder.path);
      writeFileSync(join(folder.path, `.${name}.0123456789ab.tmp`), '-----BEGIN', { mode: 0o600 });
      expect((await loadPki(await ensureDevelopmentPki(folder.path, options), now)).ok).toBe(true);
      const after = contentsOf(folder.path);
      expect(Object.keys(after).sort()).toEqual([...FILES].sort());
      expect(after).toMatchObject(before);
    },
  );

  test('another address: only the gateway certificate is made anew', async () => {
    using folder = temporaryFolder();
    const paths = await ensureDevelopmentPki(folder.path, options);
    const before = contentsOf(folder.path);
    await ensureDevelopmentPki(folder.path, { ...options, ipAddresses: ['127.0.0.1', '::1'] });
    const { 'gateway.pem': gateway, ...others } = contentsOf(folder.path);
    expect(before).toMatchObject(others);
    expect(new X509Certificate(gateway ?? '').checkIP('::1')).toBe('::1');
    expect((await loadPki(paths, now)).ok).toBe(true);
  });

  test('the gateway certificate ends in 29 days: made anew', async () => {
    using folder = temporaryFolder();
    await ensureDevelopmentPki(folder.path, options);
    const later = now + 368 * 86_400_000;
    const paths = await ensureDevelopmentPki(folder.path, { ...options, now: later });
    expect(new X509Certificate(readFileSync(paths.gatewayCert)).validToDate.getTime()).toBe(
      Math.floor(later / 1000) * 1000 + 397 * 86_400_000,
    );
  });

  test("the gateway's key was lost: key and certificate are made anew", async () => {
    using folder = temporaryFolder();
    const paths = await ensureDevelopmentPki(folder.path, options);
    rmSync(paths.gatewayKey);
    expect((await loadPki(await ensureDevelopmentPki(folder.path, options), now)).ok).toBe(true);
  });

  test("the CA's key was lost: thrown, and no other one is made", async () => {
    using folder = temporaryFolder();
    const { caKey } = await ensureDevelopmentPki(folder.path, { ...options, now });
    rmSync(caKey);
    await expect(ensureDevelopmentPki(folder.path, { ...options, now })).rejects.toThrow(`${caKey} is missing`);
    expect(existsSync(caKey)).toBe(false);
  });

  test('a gateway certificate made anew while a rotation has an archive: by the CA of before, which every agent believes', async () => {
    using folder = temporaryFolder();
    const paths = await ensureDevelopmentPki(folder.path, { ...options, now });
    using next = temporaryFolder();
    const other = await ensureDevelopmentPki(next.path, { ...options, now });
    const before = new X509Certificate(readFileSync(paths.caCert));
    for (const [to, from] of [
      [paths.caCert, other.caCert],
      [paths.caKey, other.caKey],
    ] as const) {
      renameSync(to, `${to}.previous`);
      copyFileSync(from, to);
    }
    await ensureDevelopmentPki(folder.path, { ...options, dnsNames: ['another.example'], now });
    const served = new X509Certificate(readFileSync(paths.gatewayCert));
    expect([served.checkHost('another.example'), served.verify(before.publicKey)]).toEqual(['another.example', true]);
  });

  test('a key that cannot be read: thrown, and left as it is', async () => {
    using folder = temporaryFolder();
    writeFileSync(join(folder.path, 'ca.key'), 'damaged');
    await expect(ensureDevelopmentPki(folder.path, options)).rejects.toThrow();
    expect(contentsOf(folder.path)).toEqual({ 'ca.key': 'damaged' });
    expect(existsSync(join(folder.path, 'ca.pem'))).toBe(false);
  });
});
