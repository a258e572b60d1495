import type { CaState } from '../ca/state.ts';
import { append, type Decision, type DecisionTime, following, refuse, replying } from '../decision.ts';
import type { NewEvent } from '../event/catalogue.ts';
import type { NodeState } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import { type AgentIdentity, authenticate } from './authenticate.ts';
import { type Enrollment, replay } from './enroll.ts';
import { refuseIssuer, refuseUnsafeClock } from './issuance.ts';
import type { CertificateState } from './state.ts';

/** Renewals of one certificate that are granted at once although none was used: each stands for an answer that may have been lost. */
export const FREE_RENEWALS = 4;
/** After those, one in this time, so that an agent that keeps nothing cannot fill the log. */
export const RENEWAL_INTERVAL_MS = 60_000;
/** Unused certificates of a node that are in force at most: with another one, the oldest of them is revoked. */
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
  const authorized = append(nodeStream(node.node_id), {
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
  });
  const forgotten = forgottenOf(state.inForce, certificate);
  const revoked: NewEvent[] =
    forgotten.length === 0
      ? []
      : [
          {
            stream: nodeStream(node.node_id),
            event: {
              type: 'certificates_revoked',
              data: { node_id: node.node_id, certificate_ids: forgotten, reason: 'superseded' },
            },
          },
        ];
  return replying(following(authorized, revoked), {
    certificate_id: renewal.certificate_id,
    certificate_pem: null,
  });
}

/** Ids of the oldest unused certificates, so that one more makes {@link MOST_UNUSED}. The one that asks is never among them. */
function forgottenOf(inForce: readonly CertificateState[], presented: CertificateState): string[] {
  const unused = inForce
    .filter((c) => c.first_used_at === null && c.certificate_id !== presented.certificate_id)
    .toSorted((a, b) => a.authorized_position - b.authorized_position);
  return unused.slice(0, Math.max(0, unused.length - MOST_UNUSED + 1)).map((c) => c.certificate_id);
}
