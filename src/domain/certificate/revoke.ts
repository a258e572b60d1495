import { append, type Decision, nothing, refuse } from '../decision.ts';
import type { NodeState } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import type { CertificateState } from './state.ts';

/** Revokes every certificate of a node that is not revoked yet. Takes effect on the next request. Refuses: node_unknown. */
export function revokeCertificates(
  { node_id }: { node_id: string },
  { node, certificates }: { node: NodeState | undefined; certificates: readonly CertificateState[] },
): Decision {
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  const inForce = certificates.filter((c) => c.revoked_at === null).map((c) => c.certificate_id);
  if (inForce.length === 0) return nothing();
  return append(nodeStream(node_id), {
    type: 'certificates_revoked',
    data: { node_id, certificate_ids: inForce, reason: 'operator' },
  });
}
