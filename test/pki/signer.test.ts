import { createPublicKey, verify, X509Certificate } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { sha256Hex } from '../../src/pki/certificate.ts';
import { fileSigner } from '../../src/pki/signer.ts';
import { issueAgent, newCa, newKey, openssl, pemOf, temporaryFolder } from './support.ts';

describe('a signer whose key is in a file', () => {
  test('signs what the CA certificate verifies, and names that certificate', async () => {
    const { certPem, signer } = await newCa();
    const bytes = Buffer.from('to be signed');
    expect(verify('sha256', bytes, createPublicKey(certPem), await signer.sign(bytes))).toBe(true);
    expect(signer.caSha256).toBe(sha256Hex(new X509Certificate(certPem).raw));
  });

  test('printed or serialised: no key in it', async () => {
    const { keyPem, signer } = await newCa();
    const body = keyPem.split('\n')[1] ?? '';
    expect(body).toHaveLength(64);
    expect(JSON.stringify(signer)).not.toContain(body);
    expect(Object.values(signer).map(String).join()).not.toContain(body);
  });

  test.each([
    ['with a key identifier that is a hash', 'hash'],
    ['with a key identifier of its own', '01:02:03:04'],
    ['without a key identifier', 'none'],
  ])('a CA of three name parts made by openssl %s: openssl verifies what it issues', async (_, keyIdentifier) => {
    using folder = temporaryFolder();
    const inFolder = (name: string): string => join(folder.path, name);
    const [keyFile, config, caFile, file] = [
      inFolder('ca.key'),
      inFolder('ca.cnf'),
      inFolder('ca.pem'),
      inFolder('agent.pem'),
    ];
    const keyPem = pemOf(newKey());
    writeFileSync(keyFile, keyPem, { mode: 0o600 });
    const extensions = `[e]\nbasicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign\nsubjectKeyIdentifier=${keyIdentifier}\n`;
    writeFileSync(config, `[req]\ndistinguished_name=n\nx509_extensions=e\n[n]\n${extensions}`);
    const certPem = await openssl(
      'req',
      '-x509',
      '-new',
      '-key',
      keyFile,
      '-config',
      config,
      '-subj',
      '/C=DE/O=Pushleft/CN=Fleet',
    );
    writeFileSync(caFile, certPem);
    writeFileSync(file, (await issueAgent({ certPem, keyPem, signer: fileSigner(certPem, keyPem) }, newKey())).pem);
    expect(await openssl('verify', '-purpose', 'sslclient', '-CAfile', caFile, file)).toBe(`${file}: OK\n`);
  });

  test('a certificate in the place of the key: thrown', async () => {
    const { certPem } = await newCa();
    expect(() => fileSigner(certPem, certPem)).toThrow();
  });
});
