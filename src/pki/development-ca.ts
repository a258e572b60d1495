import { createPrivateKey, createPublicKey, generateKeyPair, randomBytes, X509Certificate } from 'node:crypto';
import { chmod, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { writeFileAtomic } from './atomic-file.ts';
import { assembleCertificate, newSerial, nominalWindow, serverTbs } from './certificate.ts';
import type { PkiPaths } from './files.ts';
import { fileSigner, selfSignedCa } from './signer.ts';

const DAY_SECONDS = 24 * 60 * 60;
const CA_LIFETIME_SECONDS = 3650 * DAY_SECONDS;
const GATEWAY_LIFETIME_SECONDS = 397 * DAY_SECONDS;
/** A gateway certificate that ends sooner than this is replaced. */
const GATEWAY_RENEW_BEFORE_MS = 30 * DAY_SECONDS * 1000;
const LEFT_BY_A_CRASH = /^\.(?:ca|gateway|trust-bundle)\.(?:key|pem)(?:\.next|\.previous)?\.[0-9a-f]+\.tmp$/;
/** Agents check these certificates by clocks of their own; one that is ten minutes slow must not cut its host off. */
const BACKDATE_MS = 60 * 60 * 1000;

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

/** The same for files anywhere, whose folders are there. */
export async function ensurePki(paths: PkiPaths, options: DevelopmentPkiOptions): Promise<void> {
  const caKeyPem = await ensureFile(paths.caKey, 0o600, newKeyPem);
  const caCertPem = await ensureFile(paths.caCert, 0o644, () => newCaPem(caKeyPem, options.now));
  await ensureFile(paths.trustBundle, 0o644, async () => caCertPem);
  const gatewayKeyPem = await ensureFile(paths.gatewayKey, 0o600, newKeyPem);
  const gatewayCertPem = await ensureFile(paths.gatewayCert, 0o644, () =>
    newGatewayPem(caCertPem, caKeyPem, gatewayKeyPem, options),
  );
  const gatewayCert = new X509Certificate(gatewayCertPem);
  if (!gatewayCert.checkPrivateKey(createPrivateKey(gatewayKeyPem)) || !stillServes(gatewayCert, options)) {
    await writeFileAtomic(paths.gatewayCert, await newGatewayPem(caCertPem, caKeyPem, gatewayKeyPem, options), 0o644);
  }
}

/** Temporary files of a run that was cut short: they may hold a key that nothing uses. */
async function removeLeftovers(dir: string): Promise<void> {
  const names = await readdir(dir);
  await Promise.all(
    names.filter((name) => LEFT_BY_A_CRASH.test(name)).map((name) => rm(join(dir, name), { force: true })),
  );
}

async function ensureFile(path: string, mode: number, make: () => Promise<string>): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const text = await make();
  await writeFileAtomic(path, text, mode);
  return text;
}

async function newKeyPem(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)('ec', { namedCurve: 'P-256' });
  return privateKey.export({ format: 'pem', type: 'pkcs8' }).toString();
}

async function newCaPem(caKeyPem: string, now: number): Promise<string> {
  const fields = {
    commonName: 'Pushleft development CA',
    serialHex: newSerial(randomBytes),
    ...nominalWindow(now - BACKDATE_MS, CA_LIFETIME_SECONDS + BACKDATE_MS / 1000),
  };
  return (await selfSignedCa(caKeyPem, fields)).pem;
}

async function newGatewayPem(
  caCertPem: string,
  caKeyPem: string,
  gatewayKeyPem: string,
  options: DevelopmentPkiOptions,
): Promise<string> {
  const signer = fileSigner(caCertPem, caKeyPem);
  const tbs = serverTbs({
    commonName: 'Pushleft development gateway',
    dnsNames: options.dnsNames,
    ipAddresses: options.ipAddresses,
    spkiDer: createPublicKey(createPrivateKey(gatewayKeyPem)).export({ format: 'der', type: 'spki' }),
    serialHex: newSerial(randomBytes),
    issuer: signer.issuer,
    ...nominalWindow(options.now - BACKDATE_MS, GATEWAY_LIFETIME_SECONDS + BACKDATE_MS / 1000),
  });
  return assembleCertificate(tbs, await signer.sign(tbs)).pem;
}

function stillServes(certificate: X509Certificate, { dnsNames, ipAddresses, now }: DevelopmentPkiOptions): boolean {
  return (
    certificate.validToDate.getTime() - now > GATEWAY_RENEW_BEFORE_MS &&
    dnsNames.every((name) => certificate.checkHost(name) !== undefined) &&
    ipAddresses.every((address) => certificate.checkIP(address) !== undefined)
  );
}
