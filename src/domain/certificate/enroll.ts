import type { CaState } from '../ca/state.ts';
import { append, type Decision, type DecisionTime, nothing, refuse, replying } from '../decision.ts';
import type { EventData, FleetEvent } from '../event/catalogue.ts';
import type { NodeState, NodeStatus } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import { refuseIssuer, refuseUnsafeClock } from './issuance.ts';
import type { CertificateState } from './state.ts';

/** Everything that is in the certificate to be signed. `not_before` is the nominal start by the gateway's clock. */
export type Enrollment = Omit<
  EventData<'certificate_authorized'>,
  'purpose' | 'cause' | 'replaces_id' | 'secret_sha256' | 'secret_expires_at'
> & { readonly secret_sha256: string };

/** Why a node in this status may be given a certificate for a secret. One that was lost stays lost: it can only fetch what to clean up. */
const causes: Readonly<Record<NodeStatus, 'enrollment' | 'reenrollment' | undefined>> = {
  provisioning: 'enrollment',
  active: 'reenrollment',
  unhealthy: 'reenrollment',
  draining: 'reenrollment',
  offline: 'reenrollment',
  lost: 'reenrollment',
  revoked: undefined,
  retired: undefined,
};

/**
 * Redeems an enrolment secret for one public key, before anything is signed. The same secret with the same key, while its lifetime
 * lasts and the certificate was neither used nor revoked, is told the certificate it was given (`given`); every other reason to say
 * no is the same `enrollment_refused`, so that nothing can be learnt from it. Also refuses: clock_unsafe, issuer_not_current.
 */
export function authorizeEnrollment(
  enrollment: Enrollment,
  { node, given, ca }: { node: NodeState | undefined; given: CertificateState | undefined; ca: CaState | undefined },
  { now, at }: DecisionTime,
): Decision {
  const cause = node === undefined || node.provision_state === 'failed' ? undefined : causes[node.status];
  if (node === undefined || cause === undefined) return refuse('enrollment_refused');
  if (given !== undefined) return replayEnrollment(enrollment, given, now);
  const secret = node.armed_secrets.find((s) => s.sha256 === enrollment.secret_sha256 && s.expires_at > now);
  if (secret === undefined) return refuse('enrollment_refused');
  const refusal = refuseUnsafeClock(enrollment, { now, at }) ?? refuseIssuer(enrollment, ca);
  if (refusal !== undefined) return refusal;
  const authorized = append(nodeStream(node.node_id), {
    type: 'certificate_authorized',
    data: { ...enrollment, purpose: 'agent', cause, secret_expires_at: secret.expires_at, replaces_id: null },
  });
  return replying(authorized, { certificate_id: enrollment.certificate_id, certificate_pem: null });
}

function replayEnrollment(enrollment: Enrollment, given: CertificateState, now: number): Decision {
  const spent =
    given.public_key_spki !== enrollment.public_key_spki ||
    given.node_id !== enrollment.node_id ||
    given.first_used_at !== null ||
    given.revoked_at !== null ||
    (given.secret_expires_at ?? 0) <= now;
  return spent ? refuse('enrollment_refused') : replay(given);
}

/** Tells a caller what it was given before: the certificate, or all that is needed to sign it after all. */
export function replay(given: CertificateState): Decision {
  return nothing({
    certificate_id: given.certificate_id,
    certificate_pem: given.certificate_pem,
    not_before: given.not_before,
    not_after: given.not_after,
    issuer_ca_sha256: given.issuer_ca_sha256,
    tbs_sha256: given.tbs_sha256,
  });
}

/**
 * Records a signed certificate, before it is handed out; with the first one the node becomes active. When another gateway was first
 * (ECDSA signs differently each time), the recorded one is what the caller has to hand out. Refuses: certificate_mismatch,
 * enrollment_refused (the node was given up meanwhile, or the certificate revoked); for a renewal that is certificate_unknown.
 */
export function recordIssued(
  issued: EventData<'certificate_issued'> & { tbs_sha256: string },
  { node, certificate }: { node: NodeState | undefined; certificate: CertificateState | undefined },
): Decision {
  if (node === undefined || certificate === undefined || certificate.tbs_sha256 !== issued.tbs_sha256) {
    return refuse('certificate_mismatch');
  }
  if (certificate.certificate_pem !== null) return nothing({ certificate_pem: certificate.certificate_pem });
  if (certificate.revoked_at !== null || node.provision_state === 'failed' || node.status === 'retired') {
    return refuse(certificate.cause === 'renewal' ? 'certificate_unknown' : 'enrollment_refused');
  }
  const { tbs_sha256: _tbs, ...data } = issued;
  const events: FleetEvent[] = [{ type: 'certificate_issued', data }];
  if (node.status === 'provisioning') {
    events.push({
      type: 'node_enrolled',
      data: { node_id: node.node_id, certificate_id: certificate.certificate_id },
    });
  }
  return replying(append(nodeStream(node.node_id), ...events), { certificate_pem: issued.certificate_pem });
}
