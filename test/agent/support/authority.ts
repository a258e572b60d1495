import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const openssl = (args: readonly string[]) => run('openssl', args);

/** A CA made by openssl alone, so that no test of the agent leans on the project's own PKI. */
export interface Authority {
  readonly caFile: string;
  readonly caPem: string;
  /** Key and certificate of a server on 127.0.0.1. */
  readonly server: { readonly key: string; readonly cert: string };
  /** Signs a request as it stands; valid from `daysAgo` for `days` (a day from now by default). */
  issue(csrPem: string, window?: { readonly daysAgo: number; readonly days: number }): Promise<string>;
}

/** Makes a CA and a server certificate in `directory`. */
export async function createAuthority(directory: string, name = 'Test CA'): Promise<Authority> {
  const id = randomBytes(4).toString('hex');
  const file = (suffix: string) => `${directory}/${id}-${suffix}`;
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const ca = ['-keyout', file('ca.key'), '-out', file('ca.pem'), '-subj', `/CN=${name}`, '-days', '2'];
  await openssl(['req', '-x509', ...newKey, ...ca]);
  const server = ['-keyout', file('server.key'), '-out', file('server.csr'), '-subj', '/CN=gateway'];
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1,DNS:localhost'];
  await openssl(['req', ...newKey, ...server, ...names]);

  const issue: Authority['issue'] = async (csrPem, window = { daysAgo: 0, days: 1 }) => {
    const request = file(`${randomBytes(4).toString('hex')}.csr`);
    await writeFile(request, csrPem);
    const from = Date.now() - window.daysAgo * 86_400_000;
    const until = from + window.days * 86_400_000;
    const validity = ['-startdate', asn1Time(from - 60_000), '-enddate', asn1Time(until)];
    return signWithCa(request, file('ca.key'), file('ca.pem'), directory, validity);
  };
  const cert = await issue(await readFile(file('server.csr'), 'utf8'));
  const [key, caPem] = await Promise.all([readFile(file('server.key'), 'utf8'), readFile(file('ca.pem'), 'utf8')]);
  return { caFile: file('ca.pem'), caPem, server: { key, cert }, issue };
}

/** `openssl ca` is what signs for a window of one's own in OpenSSL 3.0; `x509 -req` learnt it later. */
async function signWithCa(
  csrFile: string,
  keyFile: string,
  certFile: string,
  directory: string,
  validity: readonly string[],
): Promise<string> {
  const base = `${csrFile}.ca`;
  const config = `
[ca]
default_ca = test
[test]
database = ${base}.index
new_certs_dir = ${directory}
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
rand_serial = yes
email_in_dn = no
[any]
commonName = supplied
`;
  await Promise.all([writeFile(`${base}.cnf`, config), writeFile(`${base}.index`, '')]);
  const files = ['-in', csrFile, '-out', `${base}.pem`, '-keyfile', keyFile, '-cert', certFile];
  await openssl(['ca', '-batch', '-notext', '-config', `${base}.cnf`, ...validity, ...files]);
  return readFile(`${base}.pem`, 'utf8');
}

function asn1Time(ms: number): string {
  return new Date(ms).toISOString().replace(/[-:T]|\.\d{3}/g, '');
}
