import { append, type Decision, type DecisionTime, nothing, refuse } from '../decision.ts';
import { nodeStream } from '../stream.ts';
import { lastSeenAt, type NodeLiveness, type NodeState } from './state.ts';

/** A node has to have been heard within this time to be admitted (requirement: heartbeated within 60 s). */
export const ADMIT_FRESHNESS_MS = 60_000;

/** Makes an enrolled node schedulable. Refuses: node_unknown, node_not_active, node_silent, capacity_unknown. */
export function admitNode(
  { node_id }: { node_id: string },
  { node, liveness }: { node: NodeState | undefined; liveness: NodeLiveness | undefined },
  { now }: DecisionTime,
): Decision {
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.schedulable) return nothing();
  if (node.status !== 'active') return refuse('node_not_active', { node_id, status: node.status });
  const silentMs = now - (lastSeenAt(node, liveness) ?? 0);
  if (silentMs > ADMIT_FRESHNESS_MS) {
    return refuse('node_silent', { node_id, silent_ms: silentMs, limit_ms: ADMIT_FRESHNESS_MS });
  }
  if (node.cpu_millis === null) return refuse('capacity_unknown', { node_id });
  return append(nodeStream(node_id), { type: 'node_admitted', data: { node_id } });
}
