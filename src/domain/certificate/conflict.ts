import { append, type Decision, type DecisionTime, nothing } from '../decision.ts';
import type { NodeState } from '../node/state.ts';
import { nodeStream } from '../stream.ts';
import { type AgentIdentity, authenticate } from './authenticate.ts';
import type { CertificateState } from './state.ts';

/** Other pairs of hosts of a node that is known to be in conflict are recorded no more often than this. */
const CONFLICT_INTERVAL_MS = 10 * 60_000;

/** Two hosts that use one identity in turn: their boot ids, and the addresses they come from, each in the order of the hosts. */
export type Conflict = AgentIdentity & { readonly boot_ids: readonly string[]; readonly addresses: readonly string[] };

/**
 * Records that two hosts use the identity of one node: a copied disk, or a snapshot that was restored beside the original. It changes
 * nothing about the node but what operators see; the first renewal that is used locks the other host out. Refuses what
 * {@link authenticate} refuses.
 */
export function recordConflict(
  { fingerprint, boot_ids, addresses }: Conflict,
  state: { node: NodeState | undefined; certificate: CertificateState | undefined },
  time: DecisionTime,
): Decision {
  const identity = authenticate({ fingerprint }, state, time);
  if (!identity.ok) return identity;
  const { node, certificate } = identity.value;
  const { conflict } = node;
  const known = conflict !== null && boot_ids.every((id) => conflict.boot_ids.includes(id));
  if (known || (conflict !== null && time.at - conflict.seen_at < CONFLICT_INTERVAL_MS)) return nothing();
  return append(nodeStream(node.node_id), {
    type: 'certificate_conflict_seen',
    data: {
      node_id: node.node_id,
      certificate_id: certificate.certificate_id,
      boot_ids: [...boot_ids],
      addresses: [...addresses],
    },
  });
}
