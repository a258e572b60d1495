import { append, type Decision, nothing, refuse, replying } from '../decision.ts';
import { FLEET_STREAM, poolStream } from '../stream.ts';
import { type AssessLosses, type LossState, silentNodes } from './assess-losses.ts';
import { type LossHoldState, WHOLE_FLEET } from './state.ts';

/**
 * An operator says that the nodes of a held pool that are silent now may be given up, however many they are. The next sweep gives up
 * those that have been silent for long enough. Replies their ids. Refuses: pool_not_held.
 */
export function releaseLosses(command: AssessLosses, state: LossState): Decision {
  const { pool } = command;
  if (typeof state.holds.get(pool)?.held_at !== 'number') return refuse('pool_not_held', { pool });
  const node_ids = silentNodes(command, state).map(({ node_id }) => node_id);
  const released = append(poolStream(pool), {
    type: 'node_loss_released',
    data: { pool, cause: 'operator', node_ids },
  });
  return replying(released, { node_ids });
}

/** An operator has no node given up by itself any more. Repeated: nothing new. */
export function freezeLosses(_: object, freeze: LossHoldState | undefined): Decision {
  if (typeof freeze?.held_at === 'number') return nothing();
  return append(FLEET_STREAM, { type: 'node_losses_frozen', data: { scope: WHOLE_FLEET } });
}

/** The opposite of {@link freezeLosses}. */
export function thawLosses(_: object, freeze: LossHoldState | undefined): Decision {
  if (typeof freeze?.held_at !== 'number') return nothing();
  return append(FLEET_STREAM, { type: 'node_losses_thawed', data: { scope: WHOLE_FLEET } });
}
