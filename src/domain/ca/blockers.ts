import type { CertificateState } from '../certificate/state.ts';
import type { NodeState, NodeStatus } from '../node/state.ts';
import type { BlockingReason } from './events.ts';
import type { RotationWitnesses } from './witnesses.ts';

/**
 * Why a node keeps a rotation from being completed. `until` (ms): when the secret ends, and with it the reason; or when the certificate
 * does, after which the node can no longer renew by itself and blocks as `no_certificate`. Null where nothing ends.
 */
export interface Blocker {
  readonly node_id: string;
  readonly name: string;
  readonly reason: BlockingReason;
  readonly until: number | null;
}

/** Whether a node in this status has to be on the new CA. A lost node does not block; a retired one is gone; one that never enrolled has nothing to lose. */
export const mustMove: Readonly<Record<NodeStatus, boolean>> = {
  provisioning: false,
  active: true,
  unhealthy: true,
  draining: true,
  offline: true,
  lost: false,
  revoked: false,
  retired: false,
};

/**
 * Who would be locked out if the old CA went now: nodes that have not used a certificate of the new one, and secrets that are still good
 * whose holder would not believe a gateway with a certificate of the new one, or may not have got its certificate yet. `certificates` are those that are not revoked.
 */
export function rotationBlockers(
  newCaSha256: string,
  { nodes, certificates }: Pick<RotationWitnesses, 'nodes' | 'certificates'>,
  now: number,
): Blocker[] {
  const byNode = Map.groupBy(certificates, (certificate) => certificate.node_id);
  return nodes.flatMap((node) => {
    const own = byNode.get(node.node_id) ?? [];
    const found = [
      ...(mustMove[node.status] ? notMoved(newCaSha256, own, now) : []),
      ...pendingEnrollment(newCaSha256, node, own, now),
    ];
    return found.map((blocker) => ({ node_id: node.node_id, name: node.name, ...blocker }));
  });
}

type Found = Pick<Blocker, 'reason' | 'until'>;

function notMoved(newCaSha256: string, own: readonly CertificateState[], now: number): readonly Found[] {
  const good = own.filter((certificate) => certificate.fingerprint !== null && certificate.not_after > now);
  const moved = good.filter((certificate) => certificate.issuer_ca_sha256 === newCaSha256);
  if (moved.some((certificate) => certificate.first_used_at !== null)) return [];
  if (moved.length > 0) return [{ reason: 'renewed_never_used', until: lastEnd(moved) }];
  if (good.length > 0) return [{ reason: 'never_renewed', until: lastEnd(good) }];
  return [{ reason: 'no_certificate', until: null }];
}

function pendingEnrollment(
  newCaSha256: string,
  node: NodeState,
  own: readonly CertificateState[],
  now: number,
): readonly Found[] {
  const blind = node.armed_secrets.filter((s) => s.expires_at > now && !s.ca_sha256s.includes(newCaSha256));
  if (blind.length > 0) {
    return [{ reason: 'secret_without_new_ca', until: Math.max(...blind.map((secret) => secret.expires_at)) }];
  }
  // Giving a node up and retiring it disarm its secrets; one that was armed since is good after a retry.
  if (node.status === 'retired' || node.provision_state === 'failed') return [];
  // Its secret is used up and the answer may be lost. Then the host tries again, and must find what it was given, also by the new CA, at
  // a gateway that it believes by nothing but the CAs it came with.
  const redeemed = own.filter((c) => c.first_used_at === null);
  const ends = redeemed.flatMap((c) =>
    c.secret_expires_at !== null && c.secret_expires_at > now ? [c.secret_expires_at] : [],
  );
  return ends.length > 0 ? [{ reason: 'enrolling', until: Math.max(...ends) }] : [];
}

function lastEnd(certificates: readonly CertificateState[]): number {
  return Math.max(...certificates.map((certificate) => certificate.not_after));
}
