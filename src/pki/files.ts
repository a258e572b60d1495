import { createPrivateKey, verify, X509Certificate } from 'node:crypto';
import { sha256Hex } from './certificate.ts';
import { p256PublicKey } from './p256.ts';
import { type FileProblem, readPkiFile } from './read-file.ts';
import { fileSigner, type Signer } from './signer.ts';

/** Where a gateway's PKI files are, with the setting that names each. */
export interface PkiPaths {
  /** PUSHLEFT_GATEWAY_CERT */
  readonly gatewayCert: string;
  /** PUSHLEFT_GATEWAY_KEY */
  readonly gatewayKey: string;
  /** PUSHLEFT_AGENT_CLIENT_CA: every CA whose agents are listened to. */
  readonly trustBundle: string;
  /** PUSHLEFT_AGENT_CA_CERT: the CA that issues. */
  readonly caCert: string;
  /** PUSHLEFT_AGENT_CA_KEY */
  readonly caKey: string;
}

/** A whole, self-tested set of PKI files: what one configuration of the listeners is made of. Never changes. */
export interface PkiSet {
  readonly gatewayCertPem: string;
  readonly gatewayKeyPem: string;
  readonly gatewayNotAfterMs: number;
  readonly bundlePem: string;
  /** SHA-256 over the exact bytes of the bundle, which an agent can compute over its own copy. */
  readonly bundleSha256: string;
  readonly signer: Signer;
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

/** The files' contents under their names in `PkiPaths`. */
type Contents = Record<keyof PkiPaths, string>;

const KEY_FILES: ReadonlySet<keyof PkiPaths> = new Set(['gatewayKey', 'caKey']);
const SELF_TEST = Buffer.from('pushleft pki self-test');

/**
 * Reads all five files and proves that they belong together: the CA key signs what the CA certificate verifies, the
 * issuing CA is in the trust bundle, the gateway's key is its certificate's. A set that is half written fails here, so
 * that whoever reloads keeps the one it has. Both certificates must be valid at `nowMs`, and agents must be able to verify the gateway's
 * by the bundle that they are given. Depends on nothing but the files and the time; expected problems are returned.
 */
export async function loadPki(paths: PkiPaths, nowMs: number): Promise<PkiLoading> {
  const contents = await readAll(paths);
  if ('code' in contents) return { ok: false, problem: contents };
  const problem = (code: PkiProblem['code'], file: keyof PkiPaths, reason: string): PkiLoading => {
    return { ok: false, problem: { code, path: paths[file], message: `${paths[file]}: ${reason}` } };
  };

  const parsed = parseAll(contents);
  if (typeof parsed === 'string') return problem('pki_file_malformed', parsed, MALFORMED[parsed]);
  const { ca, gateway, gatewayKey, bundle } = parsed;

  if (!ca.ca || p256PublicKey(ca.publicKey.export({ format: 'der', type: 'spki' })) === undefined) {
    return problem('pki_ca_unsuitable', 'caCert', 'not the certificate of a CA with a P-256 key');
  }
  const signer = attempt(() => fileSigner(contents.caCert, contents.caKey));
  if (signer === undefined) return problem('pki_file_malformed', 'caKey', MALFORMED.caKey);
  if (!(await signs(signer, ca))) {
    return problem('pki_ca_key_mismatch', 'caKey', `not the private key of the CA certificate ${paths.caCert}`);
  }
  if (!bundle.some((trusted) => trusted.raw.equals(ca.raw))) {
    return problem(
      'pki_ca_not_in_bundle',
      'trustBundle',
      `does not hold the issuing CA ${paths.caCert}, so no new agent would be let in`,
    );
  }
  if (!gateway.checkPrivateKey(gatewayKey)) {
    return problem(
      'pki_gateway_key_mismatch',
      'gatewayKey',
      `not the private key of the certificate ${paths.gatewayCert}`,
    );
  }
  if (!bundle.some((trusted) => gateway.checkIssued(trusted) && gateway.verify(trusted.publicKey))) {
    return problem(
      'pki_gateway_issuer_unknown',
      'gatewayCert',
      `not issued by a CA of the trust bundle ${paths.trustBundle}, so no agent would believe the gateway`,
    );
  }
  for (const [file, certificate] of [['caCert', ca] as const, ['gatewayCert', gateway] as const]) {
    const { validFromDate: from, validToDate: to } = certificate;
    if (nowMs < from.getTime()) {
      return problem('pki_certificate_not_yet_valid', file, `not valid before ${from.toISOString()}`);
    }
    if (nowMs >= to.getTime()) return problem('pki_certificate_expired', file, `expired at ${to.toISOString()}`);
  }
  return { ok: true, pki: pkiSet(contents, gateway, signer) };
}

/** The CA certificates of a bundle, or undefined when it holds none, a broken one, or one that is no CA. */
export function parseBundle(pem: string): X509Certificate[] | undefined {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  // Every block that begins must also end: a truncated bundle would otherwise lose its last CA in silence.
  if (blocks.length === 0 || blocks.length !== pem.split('-----BEGIN ').length - 1) return undefined;
  const certificates = blocks.map(parseCertificate);
  return certificates.every((certificate) => certificate?.ca === true)
    ? certificates.filter((c) => c !== undefined)
    : undefined;
}

const MALFORMED: Record<keyof PkiPaths, string> = {
  gatewayCert: 'not a PEM certificate',
  gatewayKey: 'not a PEM private key without a passphrase',
  trustBundle: 'not a list of PEM certificates of CAs',
  caCert: 'not a PEM certificate',
  caKey: 'not a PEM private key without a passphrase',
};

async function readAll(paths: PkiPaths): Promise<Contents | FileProblem> {
  const contents: Contents = { gatewayCert: '', gatewayKey: '', trustBundle: '', caCert: '', caKey: '' };
  for (const name of ['gatewayCert', 'gatewayKey', 'trustBundle', 'caCert', 'caKey'] as const) {
    const reading = await readPkiFile(paths[name], { secret: KEY_FILES.has(name) });
    if (!reading.ok) return reading.problem;
    contents[name] = reading.text;
  }
  return contents;
}

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

function pkiSet(contents: Contents, gateway: X509Certificate, signer: Signer): PkiSet {
  return Object.freeze({
    gatewayCertPem: contents.gatewayCert,
    gatewayKeyPem: contents.gatewayKey,
    gatewayNotAfterMs: gateway.validToDate.getTime(),
    bundlePem: contents.trustBundle,
    bundleSha256: sha256Hex(contents.trustBundle),
    signer,
  });
}

async function signs(signer: Signer, ca: X509Certificate): Promise<boolean> {
  const signature = await signer.sign(SELF_TEST).catch(() => undefined); // a key of a kind that cannot sign at all
  return signature !== undefined && verify('sha256', SELF_TEST, ca.publicKey, signature);
}

const parseCertificate = (pem: string): X509Certificate | undefined => attempt(() => new X509Certificate(pem));

/** What `parse` returns, or undefined when it throws: OpenSSL's reasons help no operator. */
function attempt<T>(parse: () => T): T | undefined {
  try {
    return parse();
  } catch {
    return undefined;
  }
}
