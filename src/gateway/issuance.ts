import { hash, randomBytes } from 'node:crypto';
import { authorizeEnrollmentCommand, authorizeRenewalCommand, recordIssuedCommand } from '../commands/certificate.ts';
import type { Reply } from '../domain/decision.ts';
import { no, ok, type Result } from '../domain/result.ts';
import {
  type AgentCertificateFields,
  agentTbs,
  assembleCertificate,
  newSerial,
  nominalWindow,
  sha256Hex,
} from '../pki/certificate.ts';
import type { Signer } from '../pki/signer.ts';
import type { CommandOptions, CommandOutcome } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';
import type { PkiHolder } from './pki-holder.ts';

/** What issuing needs. The holder is asked anew whenever the log wants another CA than the files said a moment ago. */
export interface IssuanceServices {
  readonly transactor: Pick<Transactor, 'execute'>;
  readonly pki: { readonly current: Pick<PkiHolder['current'], 'signer' | 'signers'>; reload(): Promise<void> };
  readonly lifetimeSeconds: number;
}

/** Whom a certificate is for, and the public key that the caller has proved to hold. */
interface Subject {
  readonly nodeId: string;
  readonly spkiDer: Buffer;
}

/** A node's redemption of its secret. */
export type EnrollmentClaim = Subject & { readonly secretHex: string };
/** A node's wish to replace the certificate of its connection. */
export type RenewalClaim = Subject & { readonly fingerprint: string };

/** The certificate as it stands in the log, and its nominal end (ms). */
export interface IssuedCertificate {
  readonly certificatePem: string;
  readonly notAfterMs: number;
}

/** A certificate; what the commands refuse; or why this gateway cannot issue now, in a sentence for its operator. */
export type Issuance = Result<IssuedCertificate> | { readonly ok: false; readonly unavailable: string };

/** The part of both authorising commands that is about the certificate. */
interface Wish {
  readonly certificate_id: string;
  readonly public_key_spki: string;
  readonly tbs_sha256: string;
  readonly issuer_ca_sha256: string;
  readonly not_before: number;
  readonly not_after: number;
}

/** How often the log may name another CA before a caller is told to come back: a rotation switches once, and may be aborted. */
const MOST_ISSUERS = 3;

/**
 * Enrols a node in two decisions with the signature between them, outside the lock: what is to be signed is recorded before it is signed,
 * and the certificate before it is handed out. A repeated claim goes on where the first one was cut off: the same bytes are built again
 * from the record, or the recorded certificate is handed out again. Throws UnavailableError.
 */
export function enroll(
  { secretHex, ...subject }: EnrollmentClaim,
  services: IssuanceServices,
  options: CommandOptions,
): Promise<Issuance> {
  const secret_sha256 = hash('sha256', Buffer.from(secretHex, 'hex'));
  const authorize = (wish: Wish) =>
    services.transactor.execute(
      authorizeEnrollmentCommand,
      { ...wish, node_id: subject.nodeId, secret_sha256 },
      options,
    );
  return issue(subject, authorize, services, options);
}

/** Renews a certificate, in the same two decisions as {@link enroll}. Throws UnavailableError. */
export function renewCertificate(
  { fingerprint, ...subject }: RenewalClaim,
  services: IssuanceServices,
  options: CommandOptions,
): Promise<Issuance> {
  const authorize = (wish: Wish) =>
    services.transactor.execute(authorizeRenewalCommand, { ...wish, fingerprint }, options);
  return issue(subject, authorize, services, options);
}

/** Asks in the name of the CA of the files, and where the log says that another one may issue, in the name of that one. */
async function issue(
  subject: Subject,
  authorize: (wish: Wish) => Promise<CommandOutcome>,
  services: IssuanceServices,
  options: CommandOptions,
): Promise<Issuance> {
  const { pki, lifetimeSeconds } = services;
  let signer: Signer | undefined = pki.current.signer;
  for (let tries = 0; tries < MOST_ISSUERS; tries += 1) {
    const fields = fieldsOf(subject, signer, lifetimeSeconds);
    if (fields === undefined) return { ok: false, unavailable: 'the certificate of the issuing CA has expired' };
    const outcome = await authorize(wishOf(fields, signer));
    if (outcome.ok) return signAuthorized(outcome.reply, { fields, signer }, services, options);
    if (outcome.refusal.code !== 'issuer_not_current') return outcome;
    const issuing = String(outcome.refusal.details['issuer_ca_sha256']);
    signer = await signerOf(issuing, pki);
    if (signer === undefined) {
      return { ok: false, unavailable: `this gateway does not have the key of the CA that may issue, ${issuing}` };
    }
  }
  return { ok: false, unavailable: 'the CA that may issue changed again and again' };
}

/** The signer of a CA. One that is not known may have come into the files since they were last looked at. */
async function signerOf(caSha256: string, pki: IssuanceServices['pki']): Promise<Signer | undefined> {
  const known = pki.current.signers.get(caSha256);
  if (known !== undefined) return known;
  await pki.reload();
  return pki.current.signers.get(caSha256);
}

/** Everything in a new certificate; undefined when its issuer has run out. */
function fieldsOf(
  { nodeId, spkiDer }: Subject,
  { issuer, caNotAfterMs }: Signer,
  lifetimeSeconds: number,
): AgentCertificateFields | undefined {
  const { notBeforeMs, notAfterMs } = nominalWindow(Date.now(), lifetimeSeconds);
  if (caNotAfterMs <= notBeforeMs) return undefined;
  // Nobody would accept it beyond the end of its issuer.
  const end = Math.min(notAfterMs, caNotAfterMs);
  return { nodeId, spkiDer, serialHex: newSerial(randomBytes), issuer, notBeforeMs, notAfterMs: end };
}

function wishOf(fields: AgentCertificateFields, signer: Signer): Wish {
  return {
    certificate_id: fields.serialHex,
    public_key_spki: fields.spkiDer.toString('base64'),
    tbs_sha256: sha256Hex(agentTbs(fields)),
    issuer_ca_sha256: signer.caSha256,
    not_before: fields.notBeforeMs,
    not_after: fields.notAfterMs,
  };
}

/** What is to be signed, and by whom. */
interface Authorized {
  readonly fields: AgentCertificateFields;
  readonly signer: Signer;
}

/** Signs what was authorised, now or by an earlier claim, unless that is done; an earlier one may have been of the CA before. */
async function signAuthorized(
  reply: Reply,
  asked: Authorized,
  { transactor, pki }: IssuanceServices,
  options: CommandOptions,
): Promise<Issuance> {
  if (reply['certificate_id'] === asked.fields.serialHex) return signAndRecord(asked, transactor, options);
  const earlier = readEarlier(reply);
  const { certificatePem, issuerCaSha256, tbsSha256, ...recorded } = earlier;
  if (certificatePem !== null) return ok({ certificatePem, notAfterMs: earlier.notAfterMs });
  const signer = await signerOf(issuerCaSha256, pki);
  const fields = { ...asked.fields, ...recorded, issuer: signer?.issuer ?? asked.fields.issuer };
  // Signing anything else than what was recorded would be a certificate that nobody authorised.
  if (signer === undefined || sha256Hex(agentTbs(fields)) !== tbsSha256) {
    const unavailable = `the certificate was authorised for the CA ${issuerCaSha256}, for which this gateway cannot sign it`;
    return { ok: false, unavailable };
  }
  return signAndRecord({ fields, signer }, transactor, options);
}

function readEarlier(reply: Reply) {
  const { certificate_id: serialHex, certificate_pem: pem, not_before: notBeforeMs, not_after: notAfterMs } = reply;
  const { issuer_ca_sha256: issuerCaSha256, tbs_sha256: tbsSha256 } = reply;
  if (
    typeof serialHex !== 'string' ||
    typeof notBeforeMs !== 'number' ||
    typeof notAfterMs !== 'number' ||
    typeof issuerCaSha256 !== 'string' ||
    typeof tbsSha256 !== 'string'
  ) {
    throw new Error('a certificate that was authorised before does not say what was authorised');
  }
  const certificatePem = typeof pem === 'string' ? pem : null;
  return { serialHex, certificatePem, notBeforeMs, notAfterMs, issuerCaSha256, tbsSha256 };
}

async function signAndRecord(
  { fields, signer }: Authorized,
  transactor: IssuanceServices['transactor'],
  options: CommandOptions,
): Promise<Issuance> {
  const tbs = agentTbs(fields);
  const certificate = assembleCertificate(tbs, await signer.sign(tbs));
  const outcome = await transactor.execute(
    recordIssuedCommand,
    {
      certificate_id: fields.serialHex,
      node_id: fields.nodeId,
      fingerprint: certificate.fingerprintSha256,
      certificate_pem: certificate.pem,
      tbs_sha256: sha256Hex(tbs),
    },
    options,
  );
  if (!outcome.ok) return outcome;
  const pem = outcome.reply['certificate_pem'];
  // Two gateways may have signed at once: the one that is recorded is the certificate.
  return typeof pem === 'string'
    ? ok({ certificatePem: pem, notAfterMs: fields.notAfterMs })
    : no('certificate_mismatch');
}
