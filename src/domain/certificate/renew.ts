import type { CaState } from '../ca/state.ts';
import { append, type Decision, type DecisionTime, refuse, replying } from '../decision.ts';
import type { FleetEvent } from '../event/catalogue.ts';
import type { NodeState } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import { type AgentIdentity, authenticate } from './authenticate.ts';
import { type Enrollment, replay } from './enroll.ts';
import { refuseIssuer, refuseUnsafeClock } from './issuance.ts';
import { revocations } from './revoke.ts';
import type { CertificateState } from './state.ts';

/** Renewals of one certificate that are granted at once although none was used: each stands for an answer that may have been lost. */
export const FREE_RENEWALS = 4;
/** After those, one in this time, so that an agent that keeps nothing cannot fill the log. */
export const RENEWAL_INTERVAL_MS = 60_000;
/** Renewals of a node that are in force at most and were never used: with another one, the oldest of them is revoked. */
export const MOST_UNUSED = 16;

/** A wish to renew the certificate of a connection for another key. */
export type Renewal = AgentIdentity & Omit<Enrollment, 'node_id' | 'secret_sha256'>;

/** Why a certificate is to be renewed: its life nears the end, or it is not of the CA that issues now. */
export type RenewalReason = 'lifetime' | 'issuer';

/** Why a certificate is due for renewal at `now`; null while it is not. Less than a third of its nominal life has to be left (requirement). */
export function renewalReason(
  certificate: Pick<CertificateState, 'not_before' | 'not_after' | 'issuer_ca_sha256'>,
  ca: CaState | undefined,
  now: number,
): RenewalReason | null {
  if (ca !== undefined && certificate.issuer_ca_sha256 !== ca.issuing_ca_sha256) return 'issuer';
  return now > renewableFrom(certificate) ? 'lifetime' : null;
}

function renewableFrom({ not_before, not_after }: Pick<CertificateState, 'not_before' | 'not_after'>): number {
  return not_after - (not_after - not_before) / 3;
}

/**
 * Authorises a certificate that replaces the one in use, for the same node. The same key again (the answer was lost) is told the
 * certificate it was given, while that is of the issuing CA and was not used. Of very many that were asked for and never used the oldest
 * are revoked: the agent has had later answers since. Refuses: what {@link authenticate} refuses,
 * renewal_not_due, renewal_too_often, clock_unsafe, issuer_not_current.
 */
export function authorizeRenewal(
  { fingerprint, ...renewal }: Renewal,
  state: {
    node: NodeState | undefined;
    certificate: CertificateState | undefined;
    /** Those of the node that are not revoked. */
    inForce: readonly CertificateState[];
    ca: CaState | undefined;
  },
  time: DecisionTime,
): Decision {
  const identity = authenticate({ fingerprint }, state, time);
  if (!identity.ok) return identity;
  const { node, certificate } = identity.value;
  const { ca } = state;
  const unused = state.inForce.filter((c) => c.replaces_id === certificate.certificate_id && c.first_used_at === null);
  const given = unused.find((c) => c.public_key_spki === renewal.public_key_spki);
  if (given !== undefined && renewalReason(given, ca, time.now) === null) return replay(given);
  if (renewalReason(certificate, ca, time.now) === null) {
    return refuse('renewal_not_due', { due_at: new Date(renewableFrom(certificate)).toISOString() });
  }
  const newest = Math.max(0, ...unused.map((c) => c.authorized_at));
  if (unused.length >= FREE_RENEWALS && time.at - newest < RENEWAL_INTERVAL_MS) {
    return refuse('renewal_too_often', { renewals: unused.length });
  }
  const refusal = refuseUnsafeClock(renewal, time) ?? refuseIssuer(renewal, ca);
  if (refusal !== undefined) return refusal;
  const authorized: FleetEvent = {
    type: 'certificate_authorized',
    data: {
      ...renewal,
      node_id: node.node_id,
      purpose: 'agent',
      cause: 'renewal',
      secret_sha256: null,
      secret_expires_at: null,
      replaces_id: certificate.certificate_id,
    },
  };
  const forgotten = revocations(node.node_id, forgottenOf(state.inForce, certificate), 'superseded');
  const decided = append(nodeStream(node.node_id), authorized, ...forgotten);
  return replying(decided, { certificate_id: renewal.certificate_id, certificate_pem: null });
}

/**
 * Ids of the oldest renewals that were never used, so that one more makes {@link MOST_UNUSED}. Not the one that asks, and none that an
 * enrolment secret was used up for: its host may still ask for what it was given.
 */
function forgottenOf(inForce: readonly CertificateState[], presented: CertificateState): string[] {
  const unused = inForce
    .filter((c) => c.cause === 'renewal' && c.first_used_at === null && c.certificate_id !== presented.certificate_id)
    .toSorted((a, b) => a.authorized_position - b.authorized_position);
  return unused.slice(0, Math.max(0, unused.length - MOST_UNUSED + 1)).map((c) => c.certificate_id);
}
