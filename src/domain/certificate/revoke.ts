import { append, type Decision, nothing, refuse } from '../decision.ts';
import type { EventData, FleetEvent } from '../event/catalogue.ts';
import type { NodeState } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import { MOST_REVOKED } from './events.ts';
import type { CertificateState } from './state.ts';

/** A wish to revoke all certificates of a node, or one of them. */
export interface RevokeCertificates {
  readonly node_id: string;
  readonly certificate_id?: string;
}

/**
 * Revokes what is not revoked yet. Takes effect on the next request. Refuses: node_unknown, certificate_not_found.
 */
export function revokeCertificates(
  { node_id, certificate_id }: RevokeCertificates,
  {
    node,
    named,
    inForce,
  }: {
    node: NodeState | undefined;
    named: CertificateState | undefined;
    /** Those of the node that are not revoked. */
    inForce: readonly CertificateState[];
  },
): Decision {
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (certificate_id !== undefined && named?.node_id !== node_id) {
    return refuse('certificate_not_found', { certificate: certificate_id });
  }
  const ids = inForce.map((c) => c.certificate_id);
  const revoked = certificate_id === undefined ? ids : ids.filter((id) => id === certificate_id);
  if (revoked.length === 0) return nothing();
  return append(nodeStream(node_id), ...revocations(node_id, revoked, 'operator'));
}

/** The events that revoke these certificates of a node: none for none, several for more than one event takes. */
export function revocations(
  node_id: string,
  certificateIds: readonly string[],
  reason: EventData<'certificates_revoked'>['reason'],
): FleetEvent[] {
  const events = Math.ceil(certificateIds.length / MOST_REVOKED);
  return Array.from({ length: events }, (_, i) => {
    const certificate_ids = certificateIds.slice(i * MOST_REVOKED, (i + 1) * MOST_REVOKED);
    return { type: 'certificates_revoked', data: { node_id, certificate_ids, reason } };
  });
}
