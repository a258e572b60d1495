import { execFile } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { createCsr } from '../../agent/csr.ts';

const run = promisify(execFile);

async function opensslReads(csrPem: string): Promise<string> {
  const child = run('openssl', ['req', '-verify', '-noout', '-text', '-nameopt', 'RFC2253']);
  child.child.stdin?.end(csrPem);
  const { stdout, stderr } = await child;
  return `${stdout}${stderr}`;
}

describe('createCsr', () => {
  test('a P-256 key: openssl verifies the signature and reads CN and the one SAN', async () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const text = await opensslReads(createCsr('app-fsn1-7k2m', privateKey));
    expect(text).toContain('verify OK');
    expect(text).toContain('Subject: CN=app-fsn1-7k2m\n');
    expect(text).toContain('ASN1 OID: prime256v1');
    expect(text).toContain('Signature Algorithm: ecdsa-with-SHA256');
    expect(text.match(/X509v3 Subject Alternative Name:\s+(\S.*)/)?.[1]).toBe('DNS:app-fsn1-7k2m');
    expect(text.match(/X509v3/g)).toHaveLength(1);
  });
});
