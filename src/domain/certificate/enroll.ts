import { append, type Decision, type DecisionTime, nothing, refuse, replying } from '../decision.ts';
import type { EventData, FleetEvent } from '../event/catalogue.ts';
import type { NodeState } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import type { CertificateState } from './state.ts';

/** How far clocks (database, log, gateway) may be apart while certificates are issued. */
export const MAX_CLOCK_SKEW_MS = 60_000;

/** Everything that is in the certificate to be signed. `not_before` is the nominal start by the gateway's clock. */
export type Enrollment = Omit<
  EventData<'certificate_authorized'>,
  'purpose' | 'cause' | 'replaces_id' | 'secret_expires_at'
>;

/**
 * Redeems an enrolment secret for one public key, before anything is signed. The same secret with the same key, while its lifetime
 * lasts and the certificate was neither used nor revoked, is told the certificate it was given (`replay`); every other reason to say
 * no is the same `enrollment_refused`, so that nothing can be learnt from it. Also refuses: clock_unsafe.
 */
export function authorizeEnrollment(
  enrollment: Enrollment,
  { node, certificates }: { node: NodeState | undefined; certificates: readonly CertificateState[] },
  { now, at }: DecisionTime,
): Decision {
  const given = certificates.find(
    (c) => c.secret_sha256 === enrollment.secret_sha256 && c.public_key_spki === enrollment.public_key_spki,
  );
  if (given !== undefined) return replay(given, node, now);
  if (node === undefined || node.status !== 'provisioning' || node.provision_state === 'failed') {
    return refuse('enrollment_refused');
  }
  const secret = node.armed_secrets.find(
    (armed) => armed.sha256 === enrollment.secret_sha256 && armed.expires_at > now,
  );
  if (secret === undefined) return refuse('enrollment_refused');
  const unsafe = unsafeClock(enrollment, { now, at });
  if (unsafe !== undefined) return unsafe;
  const authorized = append(nodeStream(node.node_id), {
    type: 'certificate_authorized',
    data: {
      ...enrollment,
      purpose: 'agent',
      cause: 'enrollment',
      secret_expires_at: secret.expires_at,
      replaces_id: null,
    },
  });
  return replying(authorized, { certificate_id: enrollment.certificate_id, certificate_pem: null });
}

/**
 * When certificates are issued again although the log's time is ahead of the clock (it was written while that clock was fast, and never
 * goes back): undefined when they are issued now. Both times in ms.
 */
export function issuanceHeldUntil({ at, now }: DecisionTime): number | undefined {
  return at - now > MAX_CLOCK_SKEW_MS ? at - MAX_CLOCK_SKEW_MS : undefined;
}

function unsafeClock({ not_before }: Enrollment, time: DecisionTime): Decision | undefined {
  const heldUntil = issuanceHeldUntil(time);
  if (heldUntil !== undefined) {
    const until = new Date(heldUntil).toISOString();
    return refuse('clock_unsafe', { clock: 'log', skew_ms: time.at - time.now, until });
  }
  const skewMs = not_before - time.now;
  if (Math.abs(skewMs) <= MAX_CLOCK_SKEW_MS) return undefined;
  return refuse('clock_unsafe', { clock: 'gateway', skew_ms: skewMs, until: 'it is set' });
}

function replay(given: CertificateState, node: NodeState | undefined, now: number): Decision {
  const spent = given.first_used_at !== null || given.revoked_at !== null || given.secret_expires_at <= now;
  if (spent || node === undefined || node.provision_state === 'failed') return refuse('enrollment_refused');
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
 * enrollment_refused (the node was given up meanwhile).
 */
export function recordIssued(
  issued: EventData<'certificate_issued'> & { tbs_sha256: string },
  { node, certificate }: { node: NodeState | undefined; certificate: CertificateState | undefined },
): Decision {
  if (node === undefined || certificate === undefined || certificate.tbs_sha256 !== issued.tbs_sha256) {
    return refuse('certificate_mismatch');
  }
  if (certificate.certificate_pem !== null) return nothing({ certificate_pem: certificate.certificate_pem });
  if (certificate.revoked_at !== null || node.provision_state === 'failed') return refuse('enrollment_refused');
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
