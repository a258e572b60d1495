import { append, type Decision, type DecisionTime, nothing } from '../decision.ts';
import type { FleetEvent, NewEvent } from '../event/catalogue.ts';
import type { JobState } from '../job/state.ts';
import type { NodeState } from '../node/state.ts';
import { deploymentStream, jobStream } from '../stream.ts';
import type { InstanceState } from './state.ts';

/** Asks whether an instance should wait for another node than the one it has. */
export interface UnplaceInstance {
  readonly instance_id: string;
}

/** What that is decided on. */
export interface UnplaceState {
  readonly instance: InstanceState | undefined;
  readonly node: NodeState | undefined;
  /** The job that is to start it. */
  readonly current: JobState | undefined;
}

/** How long an instance waits for its network to be admitted before it looks for another node, ms. */
export const ADMISSION_TIMEOUT_MS = 120_000;

/**
 * Puts an instance back that has a node and was not begun there: the node is being drained, or has not admitted its network for
 * {@link ADMISSION_TIMEOUT_MS}. A job that waits for it is fenced; one that somebody works on is left to end. Anything else: nothing new.
 */
export function unplaceInstance(_: UnplaceInstance, state: UnplaceState, { now }: DecisionTime): Decision {
  const { instance, node, current } = state;
  const reason = instance && reasonFor(instance, state, now);
  if (instance?.node_id == null || node === undefined || reason === undefined) return nothing();
  const { deployment_id, instance_id, node_id } = instance;
  const job_id = current?.job_id ?? null;
  const unplaced: FleetEvent = {
    type: 'instance_unplaced',
    data: { deployment_id, instance_id, node_id, job_id, reason },
  };
  const fenced: NewEvent[] =
    current === undefined
      ? []
      : [
          {
            stream: jobStream(current.job_id),
            event: {
              type: 'job_fenced',
              data: { job_id: current.job_id, node_id, reason: 'node_draining' },
            },
          },
        ];
  const decided = append(deploymentStream(deployment_id), unplaced);
  return 'refusal' in decided ? decided : { ...decided, events: [...fenced, ...decided.events] };
}

function reasonFor(
  { status, placed_at }: InstanceState,
  { node, current }: UnplaceState,
  now: number,
): 'node_draining' | 'admission_timeout' | undefined {
  const waits = status === 'reserved' || (status === 'deploying' && current?.status === 'queued');
  if (!waits) return undefined;
  if (node?.status === 'draining') return 'node_draining';
  return status === 'reserved' && now - (placed_at ?? now) >= ADMISSION_TIMEOUT_MS ? 'admission_timeout' : undefined;
}
