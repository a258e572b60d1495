import { revocations } from '../certificate/revoke.ts';
import type { CertificateState } from '../certificate/state.ts';
import type { DatabaseState } from '../database/state.ts';
import { type Decision, following, nothing, refuse } from '../decision.ts';
import type { NewEvent } from '../event/catalogue.ts';
import type { JobState } from '../job/state.ts';
import { jobStream, nodeStream } from '../stream.ts';
import { type Occupancy, refuseBusy } from './drain.ts';
import { type Holdings, reclaim } from './reclaim.ts';
import type { NodeState, NodeStatus } from './state.ts';

/** What the end of a node is decided on. */
export interface RetireState extends Occupancy {
  /** Certificates of every purpose that are not revoked. */
  readonly inForce: readonly CertificateState[];
  /** Jobs for the node that nobody has begun. */
  readonly queued: readonly JobState[];
  readonly databases: readonly DatabaseState[];
}

/** A node that is in service is drained first. */
const MAY_RETIRE = ['draining', 'provisioning', 'offline', 'revoked', 'lost'] as const satisfies readonly NodeStatus[];

/**
 * Takes a node out of the fleet for good (requirement, Drain, decommission, replacement): nothing may be held of it any more and nobody
 * may work on anything there; all of its certificates are revoked, and what waited for it is given up. Retired already: nothing new. Its
 * server is deleted afterwards, by whoever asked. Refuses: node_unknown, node_in_service, database_held, node_busy.
 */
export function retireNode({ node_id }: { readonly node_id: string }, state: RetireState): Decision {
  const { node, allocations, databases } = state;
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.status === 'retired') return nothing();
  if (!MAY_RETIRE.some((status) => status === node.status)) {
    return refuse('node_in_service', { node_id, status: node.status });
  }
  const held = allocations.find(({ kind }) => kind === 'database');
  if (held !== undefined) {
    const named = databases.find(({ database_id }) => database_id === held.database_id);
    return refuse('database_held', { node_id, database: named?.name ?? held.database_id ?? '' });
  }
  const busy = refuseBusy(state);
  if (busy !== undefined) return busy;
  const retired = { stream: nodeStream(node_id), event: { type: 'node_retired', data: { node_id } } } as const;
  const events = [...fenced(node_id, state.queued), ...revoked(node_id, state.inForce), retired];
  return { events, reply: {}, bodies: [] };
}

function fenced(node_id: string, jobs: readonly JobState[]): NewEvent[] {
  return jobs.map(({ job_id }) => ({
    stream: jobStream(job_id),
    event: { type: 'job_fenced', data: { job_id, node_id, reason: 'node_retired' } },
  }));
}

function revoked(node_id: string, certificates: readonly CertificateState[]): NewEvent[] {
  const ids = certificates.map(({ certificate_id }) => certificate_id);
  return revocations(node_id, ids, 'operator').map((event) => ({ stream: nodeStream(node_id), event }));
}

/**
 * Says that a host is not trusted any more: everything is taken from the node as from a lost one, and its certificates are revoked, so that
 * not even a cleanup list is told to it. Repeated: nothing new. Refuses: node_unknown, node_retired.
 */
export function revokeNode(
  { node_id }: { readonly node_id: string },
  state: {
    readonly node: NodeState | undefined;
    readonly inForce: readonly CertificateState[];
    readonly holdings: Holdings;
  },
): Decision {
  const { node, inForce, holdings } = state;
  if (node === undefined) return refuse('node_unknown', { node: node_id });
  if (node.status === 'revoked') return nothing();
  if (node.status === 'retired') return refuse('node_retired', { node_id });
  const { taken, follow } = reclaim(node, holdings, 'node_revoked');
  const event = { type: 'node_revoked', data: { node_id, ...taken } } as const;
  const decided = { events: [{ stream: nodeStream(node_id), event }], reply: {}, bodies: [] };
  return following(decided, [...revoked(node_id, inForce), ...follow]);
}
