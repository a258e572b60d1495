import type { RecordedOf } from '../src/domain/event/recorded.ts';
import { type LossHoldState, WHOLE_FLEET } from '../src/domain/pool/state.ts';
import { defineProjection, replaces } from './projection.ts';
import { defineTable, json, text, timestamp } from './table.ts';

const table = defineTable<LossHoldState>()({
  name: 'node_loss_holds',
  key: 'scope',
  columns: {
    scope: text,
    held_at: timestamp.orNull,
    silent_node_ids: json,
    released_node_ids: json,
    changed_at: timestamp,
  },
  indexes: [],
});

const byHand = (held: boolean) =>
  replaces(
    (_: RecordedOf<'node_losses_frozen'> | RecordedOf<'node_losses_thawed'>) => WHOLE_FLEET,
    ({ at }): LossHoldState => ({
      scope: WHOLE_FLEET,
      held_at: held ? at : null,
      silent_node_ids: [],
      released_node_ids: [],
      changed_at: at,
    }),
  );

/** Whether silent nodes of a pool are given up, and the switch by hand for all of them. No row: they are. */
export const nodeLossHolds = defineProjection(table, {
  node_loss_held: replaces(
    ({ data }) => data.pool,
    ({ at, data }): LossHoldState => ({
      scope: data.pool,
      held_at: at,
      silent_node_ids: data.silent_node_ids,
      released_node_ids: [],
      changed_at: at,
    }),
  ),
  node_loss_released: replaces(
    ({ data }) => data.pool,
    ({ at, data }): LossHoldState => ({
      scope: data.pool,
      held_at: null,
      silent_node_ids: [],
      released_node_ids: data.node_ids,
      changed_at: at,
    }),
  ),
  node_losses_frozen: byHand(true),
  node_losses_thawed: byHand(false),
});
