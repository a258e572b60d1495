import { hash, randomBytes } from 'node:crypto';
import { authorizeEnrollmentCommand, recordIssuedCommand } from '../commands/certificate.ts';
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
import type { CommandOptions } from '../transactor/command.ts';
import { UnavailableError } from '../transactor/command.ts';
import type { Transactor } from '../transactor/transactor.ts';

/** What enrolling needs. */
export interface EnrollmentServices {
  readonly transactor: Pick<Transactor, 'execute'>;
  readonly signer: Signer;
  readonly lifetimeSeconds: number;
}

/** A node's redemption of its secret for a public key that it has proved to hold. */
export interface EnrollmentClaim {
  readonly nodeId: string;
  readonly secretHex: string;
  readonly spkiDer: Buffer;
}

/** The certificate as it stands in the log, and its nominal end (ms). */
export interface IssuedCertificate {
  readonly certificatePem: string;
  readonly notAfterMs: number;
}

/**
 * Enrols in two decisions with the signature between them, outside the lock: what is to be signed is recorded before it is signed, and
 * the certificate before it is handed out. A repeated claim goes on where the first one was cut off: the same bytes are built again
 * from the record, or the recorded certificate is handed out again. Refuses what the two commands refuse. Throws UnavailableError.
 */
export async function enroll(
  claim: EnrollmentClaim,
  { transactor, signer, lifetimeSeconds }: EnrollmentServices,
  options: CommandOptions,
): Promise<Result<IssuedCertificate>> {
  const { notBeforeMs, notAfterMs: nominalEndMs } = nominalWindow(Date.now(), lifetimeSeconds);
  if (signer.caNotAfterMs <= notBeforeMs)
    throw new UnavailableError('closed', 'the certificate of the issuing CA has expired');
  const fields: AgentCertificateFields = {
    nodeId: claim.nodeId,
    spkiDer: claim.spkiDer,
    serialHex: newSerial(randomBytes),
    issuer: signer.issuer,
    notBeforeMs,
    // Nobody would accept it beyond the end of its issuer.
    notAfterMs: Math.min(nominalEndMs, signer.caNotAfterMs),
  };
  const outcome = await transactor.execute(
    authorizeEnrollmentCommand,
    {
      certificate_id: fields.serialHex,
      node_id: claim.nodeId,
      secret_sha256: hash('sha256', Buffer.from(claim.secretHex, 'hex')),
      public_key_spki: claim.spkiDer.toString('base64'),
      tbs_sha256: sha256Hex(agentTbs(fields)),
      issuer_ca_sha256: signer.caSha256,
      not_before: fields.notBeforeMs,
      not_after: fields.notAfterMs,
    },
    options,
  );
  if (!outcome.ok) return outcome;
  const recorded = readReply(outcome.reply, fields, signer);
  const notAfterMs = recorded.fields.notAfterMs;
  if (recorded.certificatePem !== null) return ok({ certificatePem: recorded.certificatePem, notAfterMs });
  const certificatePem = await signAndRecord(recorded.fields, { transactor, signer }, options);
  return certificatePem.ok ? ok({ certificatePem: certificatePem.value, notAfterMs }) : certificatePem;
}

/** What was authorised: now, or by an earlier claim with the same secret and key. */
function readReply(reply: Reply, fields: AgentCertificateFields, signer: Signer) {
  const { certificate_id: serialHex, certificate_pem: pem, not_before: notBeforeMs, not_after: notAfterMs } = reply;
  const certificatePem = typeof pem === 'string' ? pem : null;
  if (serialHex === fields.serialHex) return { certificatePem, fields };
  if (typeof serialHex !== 'string' || typeof notBeforeMs !== 'number' || typeof notAfterMs !== 'number') {
    throw new Error('an authorised enrolment does not say what was authorised');
  }
  const earlier = { ...fields, serialHex, notBeforeMs, notAfterMs };
  const sameBytes =
    reply['issuer_ca_sha256'] === signer.caSha256 && reply['tbs_sha256'] === sha256Hex(agentTbs(earlier));
  if (certificatePem === null && !sameBytes) {
    // Signing anything else than what was recorded would be a certificate that nobody authorised.
    throw new UnavailableError('closed', 'the certificate was authorised for another CA than the one that issues now');
  }
  return { certificatePem, fields: earlier };
}

async function signAndRecord(
  fields: AgentCertificateFields,
  { transactor, signer }: Pick<EnrollmentServices, 'transactor' | 'signer'>,
  options: CommandOptions,
): Promise<Result<string>> {
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
  return typeof pem === 'string' ? ok(pem) : no('certificate_mismatch');
}
