import type { NodeState } from '../node/state.ts';
import type { Role } from './events.ts';
import type { DeploymentState } from './state.ts';

type Sizes = Pick<Role, 'cpu_millis' | 'memory_mb' | 'disk_gb'>;

/** A node that takes work, as far as a choice looks at it. It is changed by {@link take}, so that many are chosen in one go. */
export interface Candidate extends Pick<NodeState, 'node_id' | 'pool' | 'region'> {
  readonly capacity: Sizes;
  readonly used: { -readonly [K in keyof Sizes]: number };
  /** How many more instances may have a place on it, whatever they use. */
  places: number;
  /** Instances of each role on it, by {@link roleKey}. */
  readonly running: Map<string, number>;
}

/** The key under which instances of a deployment's role are counted. */
export function roleKey(deployment_id: string, role: string): string {
  return `${deployment_id}.${role}`;
}

/** Why no node was chosen: none may run it at all, or a sealed environment has no member that may. Room may come back by itself. */
export type Unplaceable = 'no_eligible_node' | 'placement_rejected';

/**
 * The node for one more instance of a role: of the deployment's pool and regions, a member where the environment is sealed, with room;
 * among those the one with the fewest of the role, then the one that is filled the least afterwards, then by id. Whether it may really
 * be placed there is decided under the lock (placeInstance).
 */
export function chooseNode(
  role: Role,
  deployment: DeploymentState,
  candidates: readonly Candidate[],
): Candidate | Unplaceable {
  const { pool, regions, sealed_member_node_ids: members } = deployment;
  const key = roleKey(deployment.deployment_id, role.role);
  let best: { candidate: Candidate; rank: readonly [number, number] } | undefined;
  for (const candidate of candidates) {
    if (candidate.pool !== pool || !regions.includes(candidate.region)) continue;
    if (members !== null && !members.includes(candidate.node_id)) continue;
    if (candidate.places <= 0) continue;
    const filled = fillAfter(role, candidate);
    if (filled > 1) continue;
    const rank = [candidate.running.get(key) ?? 0, filled] as const;
    if (best === undefined || isLess(rank, best.rank)) best = { candidate, rank };
  }
  return best?.candidate ?? (members === null ? 'no_eligible_node' : 'placement_rejected');
}

/** Counts one more instance of a role on a candidate. */
export function take(role: Role, deployment_id: string, candidate: Candidate): void {
  const { used, running } = candidate;
  candidate.places -= 1;
  used.cpu_millis += role.cpu_millis;
  used.memory_mb += role.memory_mb;
  used.disk_gb += role.disk_gb;
  const key = roleKey(deployment_id, role.role);
  running.set(key, (running.get(key) ?? 0) + 1);
}

/** How full the fullest part of a node would be: 1 is all of it. */
function fillAfter(wanted: Sizes, { capacity, used }: Candidate): number {
  const share = (part: keyof Sizes) => {
    const sum = used[part] + wanted[part];
    return sum === 0 ? 0 : sum / capacity[part];
  };
  return Math.max(share('cpu_millis'), share('memory_mb'), share('disk_gb'));
}

function isLess(a: readonly [number, number], b: readonly [number, number]): boolean {
  return a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
}
