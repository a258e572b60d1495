import { createPrivateKey, X509Certificate } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from './atomic-file.ts';
import { makeCa, makeGatewayCertificate, makeKeyPem } from './authority.ts';
import { type PkiPaths, previousPath } from './files.ts';
import { fileSigner } from './signer.ts';

/** A gateway certificate that ends sooner than this is replaced. */
const GATEWAY_RENEW_BEFORE_MS = 30 * 24 * 60 * 60 * 1000;
const LEFT_BY_A_CRASH = /^\.(?:ca|gateway|trust-bundle)\.(?:key|pem)(?:\.next|\.previous)?\.[0-9a-f]+\.tmp$/;

/** The names of the gateway, and the time (ms since the epoch). */
export interface DevelopmentPkiOptions {
  readonly dnsNames: readonly string[];
  readonly ipAddresses: readonly string[];
  readonly now: number;
}

/**
 * Makes the PKI of a fleet on one machine in `dir` (0700; keys 0600): a CA, the trust bundle that holds it, and the
 * gateway's key and certificate. Each file is written whole and only where it is missing, in the order in which one
 * needs the other, so that a run cut anywhere is completed by the next. The gateway's certificate is made anew when it
 * does not cover the names, nears its end, or is for a key that was lost. Throws when a file that is there cannot be used: it is never overwritten.
 */
export async function ensureDevelopmentPki(dir: string, options: DevelopmentPkiOptions): Promise<PkiPaths> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await chmod(dir, 0o700);
  await removeLeftovers(dir);
  const paths: PkiPaths = {
    caKey: join(dir, 'ca.key'),
    caCert: join(dir, 'ca.pem'),
    trustBundle: join(dir, 'trust-bundle.pem'),
    gatewayKey: join(dir, 'gateway.key'),
    gatewayCert: join(dir, 'gateway.pem'),
  };
  await ensurePki(paths, options);
  return paths;
}

/** The same in a folder that is there. */
async function ensurePki(paths: PkiPaths, options: DevelopmentPkiOptions): Promise<void> {
  const caKeyPem = await ensureCaKey(paths);
  const caCertPem = await ensureFile(paths.caCert, 0o644, async () => (await makeCa(caKeyPem, options.now)).pem);
  await ensureFile(paths.trustBundle, 0o644, async () => caCertPem);
  const gatewayKeyPem = await ensureFile(paths.gatewayKey, 0o600, makeKeyPem);
  const sign = async () => {
    // While a rotation is under way not every agent believes the CA in the main files; the one before it is in the archive.
    const issuer = (await readArchive(paths)) ?? { certPem: caCertPem, keyPem: caKeyPem };
    const { dnsNames, ipAddresses } = options;
    const names = { commonName: 'Pushleft gateway', dnsNames, ipAddresses };
    const signer = fileSigner(issuer.certPem, issuer.keyPem);
    return (await makeGatewayCertificate(names, gatewayKeyPem, signer, options.now)).pem;
  };
  const gatewayCert = new X509Certificate(await ensureFile(paths.gatewayCert, 0o644, sign));
  if (!gatewayCert.checkPrivateKey(createPrivateKey(gatewayKeyPem)) || !stillServes(gatewayCert, options)) {
    await writeFileAtomic(paths.gatewayCert, await sign(), 0o644);
  }
}

/** A key that was lost cannot be made again: a new one beside the old certificate would only look like a CA. */
async function ensureCaKey({ caKey, caCert }: PkiPaths): Promise<string> {
  const keyPem = await readIfThere(caKey);
  if (keyPem !== undefined) return keyPem;
  if ((await readIfThere(caCert)) !== undefined) {
    throw new Error(`${caKey} is missing, and ${caCert} is of no use without it: put the key back, or move both away`);
  }
  return ensureFile(caKey, 0o600, makeKeyPem);
}

async function readArchive({ caCert, caKey }: PkiPaths): Promise<{ certPem: string; keyPem: string } | undefined> {
  const [certPem, keyPem] = await Promise.all([readIfThere(previousPath(caCert)), readIfThere(previousPath(caKey))]);
  return certPem === undefined || keyPem === undefined ? undefined : { certPem, keyPem };
}

/** Temporary files of a run that was cut short: they may hold a key that nothing uses. */
async function removeLeftovers(dir: string): Promise<void> {
  const names = await readdir(dir);
  await Promise.all(
    names.filter((name) => LEFT_BY_A_CRASH.test(name)).map((name) => rm(join(dir, name), { force: true })),
  );
}

async function ensureFile(path: string, mode: number, make: () => Promise<string>): Promise<string> {
  const there = await readIfThere(path);
  if (there !== undefined) return there;
  const text = await make();
  await writeFileAtomic(path, text, mode);
  return text;
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function stillServes(certificate: X509Certificate, { dnsNames, ipAddresses, now }: DevelopmentPkiOptions): boolean {
  return (
    certificate.validToDate.getTime() - now > GATEWAY_RENEW_BEFORE_MS &&
    dnsNames.every((name) => certificate.checkHost(name) !== undefined) &&
    ipAddresses.every((address) => certificate.checkIP(address) !== undefined)
  );
}
