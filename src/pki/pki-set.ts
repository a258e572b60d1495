import { createPrivateKey, verify, type X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { attempt, issued, parseBundle, parseCertificate } from './bundle.ts';
import { sha256Hex } from './certificate.ts';
import { type Archive, type Contents, type PkiFiles, type PkiPaths, readPkiFiles } from './files.ts';
import { p256PublicKey } from './p256.ts';
import type { FileProblem } from './read-file.ts';
import { fileSigner, type Signer } from './signer.ts';

/** What a gateway shows its clients. The window (ms) is the certificate's own, its backdated start included. */
export interface ServingCertificate {
  readonly fingerprintSha256: string;
  readonly issuerCaSha256: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** A whole, self-tested set of PKI files: what one configuration of the listeners is made of. Never changes. */
export interface PkiSet {
  readonly gatewayCertPem: string;
  readonly gatewayKeyPem: string;
  readonly serving: ServingCertificate;
  readonly bundlePem: string;
  /** SHA-256 over the exact bytes of the bundle, which an agent can compute over its own copy. */
  readonly bundleSha256: string;
  readonly trustedCas: readonly X509Certificate[];
  /** Their fingerprints, in the bundle's order, each once. */
  readonly trustedCaSha256s: readonly string[];
  /** Of the CA in `caCert`. */
  readonly signer: Signer;
  /** Of the CA before it, while a rotation keeps its archive beside the files. */
  readonly previousSigner: Signer | undefined;
  /** Both by the fingerprint of their CA. Which one may issue is the log's decision, not the files'. */
  readonly signers: ReadonlyMap<string, Signer>;
}

/** Why a set cannot be used: a closed code, the file to look at, and one line for the operator, free of key material. */
export interface PkiProblem {
  readonly code:
    | FileProblem['code']
    | 'pki_file_malformed'
    | 'pki_ca_unsuitable'
    | 'pki_ca_key_mismatch'
    | 'pki_ca_not_in_bundle'
    | 'pki_gateway_key_mismatch'
    | 'pki_gateway_unsuitable'
    | 'pki_gateway_issuer_unknown'
    | 'pki_certificate_expired'
    | 'pki_certificate_not_yet_valid';
  readonly path: string;
  readonly message: string;
}

/** The outcome of loading. */
export type PkiLoading =
  | { readonly ok: true; readonly pki: PkiSet }
  | { readonly ok: false; readonly problem: PkiProblem };

const SELF_TEST = Buffer.from('pushleft pki self-test');
const SERVER_AUTH = '1.3.6.1.5.5.7.3.1';

/** Reads and proves in one go: {@link readPkiFiles}, then {@link provePki}. */
export async function loadPki(paths: PkiPaths, nowMs: number): Promise<PkiLoading> {
  return provePki(await readPkiFiles(paths), nowMs);
}

/**
 * Proves that the files belong together: the CA key signs what the CA certificate verifies, the issuing CA is in the
 * trust bundle, the gateway's key is its certificate's. A set that is half written fails here, so that whoever reloads
 * keeps the one it has. Both certificates must be valid at `nowMs`, except that one which `running` holds already does not stop the rest
 * of the set from changing when it has run out. Agents must be able to verify the gateway's by the bundle that they are given. An archive
 * of the previous CA that is half there, or of a CA that is not in the bundle, is left out: it is about to be made or removed.
 * Depends on nothing but the files and the time; expected problems are returned.
 */
export async function provePki({ paths, read }: PkiFiles, nowMs: number, running?: PkiSet): Promise<PkiLoading> {
  if ('code' in read) return { ok: false, problem: read };
  const { contents, archive } = read;
  const parsed = parseAll(contents);
  if (typeof parsed === 'string') return failed(paths, malformed(parsed));
  const signer = await proveIssuer(contents, parsed, paths);
  if ('reason' in signer) return failed(paths, signer);
  const gatewayCa = proveServing(contents, parsed, paths);
  if ('reason' in gatewayCa) return failed(paths, gatewayCa);
  const untimely = outOfTime(parsed, nowMs, running);
  if (untimely !== undefined) return failed(paths, untimely);
  const { gateway, bundle } = parsed;
  const previousSigner = archive === undefined ? undefined : await archivedSigner(archive, bundle);
  return { ok: true, pki: pkiSet(contents, { gateway, gatewayCa, bundle, signer, previousSigner }) };
}

/** What is wrong, and with which of the files. */
interface Fault {
  readonly code: PkiProblem['code'];
  readonly file: keyof PkiPaths;
  readonly reason: string;
}

function failed(paths: PkiPaths, { code, file, reason }: Fault): PkiLoading {
  return { ok: false, problem: { code, path: paths[file], message: `${paths[file]}: ${reason}` } };
}

const malformed = (file: keyof PkiPaths): Fault => ({ code: 'pki_file_malformed', file, reason: MALFORMED[file] });

/** The CA's two files belong together, and whom it issues to is let in: its signer. */
async function proveIssuer(contents: Contents, { ca, bundle }: Parsed, paths: PkiPaths): Promise<Signer | Fault> {
  if (!ca.ca || p256PublicKey(ca.publicKey.export({ format: 'der', type: 'spki' })) === undefined) {
    return { code: 'pki_ca_unsuitable', file: 'caCert', reason: 'not the certificate of a CA with a P-256 key' };
  }
  const signer = attempt(() => fileSigner(contents.caCert, contents.caKey));
  if (signer === undefined) return malformed('caKey');
  if (!(await signs(signer, ca))) {
    const reason = `not the private key of the CA certificate ${paths.caCert}`;
    return { code: 'pki_ca_key_mismatch', file: 'caKey', reason };
  }
  if (!bundle.some((trusted) => trusted.raw.equals(ca.raw))) {
    const reason = `does not hold the issuing CA ${paths.caCert}, so no new agent would be let in`;
    return { code: 'pki_ca_not_in_bundle', file: 'trustBundle', reason };
  }
  return signer;
}

/** The gateway's two files belong together, and agents believe it: the CA of its certificate. */
function proveServing(
  contents: Contents,
  { gateway, gatewayKey, bundle }: Parsed,
  paths: PkiPaths,
): X509Certificate | Fault {
  if (!gateway.checkPrivateKey(gatewayKey)) {
    const reason = `not the private key of the certificate ${paths.gatewayCert}`;
    return { code: 'pki_gateway_key_mismatch', file: 'gatewayKey', reason };
  }
  const gatewayCa = bundle.find((trusted) => issued(trusted, gateway));
  if (gatewayCa === undefined) {
    const reason = `not issued by a CA of the trust bundle ${paths.trustBundle}, so no agent would believe the gateway`;
    return { code: 'pki_gateway_issuer_unknown', file: 'gatewayCert', reason };
  }
  if (!serves(contents, gateway)) {
    return { code: 'pki_gateway_unsuitable', file: 'gatewayCert', reason: 'not for a TLS server' };
  }
  return gatewayCa;
}

/** A certificate that is not valid now, and is not in force already. */
function outOfTime({ ca, gateway }: Parsed, nowMs: number, running: PkiSet | undefined): Fault | undefined {
  for (const [file, certificate] of [['caCert', ca] as const, ['gatewayCert', gateway] as const]) {
    if (running !== undefined && holds(running, certificate)) continue;
    const { validFromDate: from, validToDate: to } = certificate;
    if (nowMs < from.getTime()) {
      return { code: 'pki_certificate_not_yet_valid', file, reason: `not valid before ${from.toISOString()}` };
    }
    if (nowMs >= to.getTime()) {
      return { code: 'pki_certificate_expired', file, reason: `expired at ${to.toISOString()}` };
    }
  }
  return undefined;
}

const MALFORMED: Record<keyof PkiPaths, string> = {
  gatewayCert: 'not a PEM certificate',
  gatewayKey: 'not a PEM private key without a passphrase',
  trustBundle: 'not a list of PEM certificates of CAs',
  caCert: 'not a PEM certificate',
  caKey: 'not a PEM private key without a passphrase',
};

/** All but the CA's key, which only the signer sees; or the name of the first file that cannot be parsed. */
function parseAll(contents: Contents) {
  const ca = parseCertificate(contents.caCert);
  if (ca === undefined) return 'caCert';
  const gateway = parseCertificate(contents.gatewayCert);
  if (gateway === undefined) return 'gatewayCert';
  const gatewayKey = attempt(() => createPrivateKey(contents.gatewayKey));
  if (gatewayKey === undefined) return 'gatewayKey';
  const bundle = parseBundle(contents.trustBundle);
  if (bundle === undefined) return 'trustBundle';
  return { ca, gateway, gatewayKey, bundle };
}

type Parsed = Exclude<ReturnType<typeof parseAll>, string>;

/** What a set is made of once everything is proved. */
interface Proved {
  readonly gateway: X509Certificate;
  readonly gatewayCa: X509Certificate;
  readonly bundle: readonly X509Certificate[];
  readonly signer: Signer;
  readonly previousSigner: Signer | undefined;
}

function pkiSet(contents: Contents, { gateway, gatewayCa, bundle, signer, previousSigner }: Proved): PkiSet {
  const signers = [signer, ...(previousSigner === undefined ? [] : [previousSigner])];
  return Object.freeze({
    gatewayCertPem: contents.gatewayCert,
    gatewayKeyPem: contents.gatewayKey,
    serving: {
      fingerprintSha256: sha256Hex(gateway.raw),
      issuerCaSha256: sha256Hex(gatewayCa.raw),
      notBeforeMs: gateway.validFromDate.getTime(),
      notAfterMs: gateway.validToDate.getTime(),
    },
    bundlePem: contents.trustBundle,
    bundleSha256: sha256Hex(contents.trustBundle),
    trustedCas: bundle,
    trustedCaSha256s: [...new Set(bundle.map(({ raw }) => sha256Hex(raw)))],
    signer,
    previousSigner,
    signers: new Map(signers.map((each) => [each.caSha256, each])),
  });
}

/** The archived CA's signer, if its two files belong together and agents of that CA are still let in. */
async function archivedSigner(
  { caCert, caKey }: Archive,
  bundle: readonly X509Certificate[],
): Promise<Signer | undefined> {
  const certificate = parseCertificate(caCert);
  const trusted = certificate !== undefined && bundle.some(({ raw }) => raw.equals(certificate.raw));
  const signer = attempt(() => fileSigner(caCert, caKey));
  if (!trusted || signer === undefined) return undefined;
  return (await signs(signer, certificate)) ? signer : undefined;
}

/** Whether TLS takes certificate and key as they are, and clients take the certificate for a server's. */
function serves({ gatewayCert: cert, gatewayKey: key, trustBundle: ca }: Contents, gateway: X509Certificate): boolean {
  // Node calls the extended usages so, and has none where a certificate is for everything, whatever its types say.
  const usages: readonly string[] | undefined = gateway.keyUsage;
  if (gateway.ca || !(usages ?? [SERVER_AUTH]).includes(SERVER_AUTH)) return false;
  return attempt(() => createSecureContext({ cert, key, ca })) !== undefined;
}

function holds(running: PkiSet, certificate: X509Certificate): boolean {
  const fingerprint = sha256Hex(certificate.raw);
  return fingerprint === running.signer.caSha256 || fingerprint === running.serving.fingerprintSha256;
}

async function signs(signer: Signer, ca: X509Certificate): Promise<boolean> {
  const signature = await signer.sign(SELF_TEST).catch(() => undefined); // a key of a kind that cannot sign at all
  return signature !== undefined && verify('sha256', SELF_TEST, ca.publicKey, signature);
}
