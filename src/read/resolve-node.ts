import type { NodeState } from '../domain/node/state.ts';
import { no, ok, type Result } from '../domain/result.ts';
import type { FleetView } from './fleet-view.ts';

/** The beginning of an id that may stand for the whole: shorter ones hit by chance. */
export const PREFIX_MIN_LENGTH = 4;

/**
 * The node that an operator means by a name, an id, or the beginning of an id (at least {@link PREFIX_MIN_LENGTH} characters). A name
 * or whole id wins over beginnings. Refuses: node_unknown, node_ambiguous.
 */
export async function resolveNode(
  view: Pick<FleetView, 'nodesMatching'>,
  reference: string,
): Promise<Result<NodeState>> {
  const matching = await view.nodesMatching(reference);
  const exact = matching.find((node) => node.name === reference || node.node_id === reference);
  if (exact !== undefined) return ok(exact);
  const [first, ...others] = reference.length < PREFIX_MIN_LENGTH ? [] : matching;
  if (first === undefined) return no('node_unknown', { node: reference });
  if (others.length > 0) return no('node_ambiguous', { node: reference });
  return ok(first);
}

/** Each of several references as {@link resolveNode} does; the first that is refused refuses all. A node named twice counts once. */
export async function resolveNodes(
  view: Pick<FleetView, 'nodesMatching'>,
  references: readonly string[],
): Promise<Result<readonly NodeState[]>> {
  const nodes = new Map<string, NodeState>();
  for (const reference of references) {
    const resolved = await resolveNode(view, reference);
    if (!resolved.ok) return resolved;
    nodes.set(resolved.value.node_id, resolved.value);
  }
  return ok([...nodes.values()]);
}
