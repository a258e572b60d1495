import { POOLS } from '../domain/fields.ts';
import type { NodeStatus } from '../domain/node/state.ts';
import { type AssessLosses, assessLosses, type LossState } from '../domain/pool/assess-losses.ts';
import { freezeLosses, releaseLosses, thawLosses } from '../domain/pool/loss-hold.ts';
import { type LossHoldState, WHOLE_FLEET } from '../domain/pool/state.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import { nodesInStatus } from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';

/** Nodes that are waited for, and those that were. */
const COUNTED = ['active', 'unhealthy', 'draining', 'lost'] as const satisfies readonly NodeStatus[];

async function loadLosses(rows: Rows): Promise<LossState> {
  const [nodes, scheduler, holds] = await Promise.all([
    rows.find(nodesInStatus, { statuses: COUNTED }),
    rows.get('scheduler', SCHEDULER),
    Promise.all(POOLS.map(async (pool) => [pool, await rows.get('node_loss_holds', pool)] as const)),
  ]);
  const liveness = await Promise.all(nodes.map(({ node_id }) => rows.get('node_liveness', node_id)));
  return {
    nodes,
    scheduler,
    liveness: new Map(liveness.flatMap((row) => (row === undefined ? [] : [[row.node_id, row]]))),
    holds: new Map(holds.flatMap(([pool, hold]) => (hold === undefined ? [] : [[pool, hold]]))),
  };
}

/** See {@link assessLosses}. */
export const assessLossesCommand: CommandDefinition<AssessLosses, LossState> = {
  name: 'assess_losses',
  load: loadLosses,
  decide: assessLosses,
};

/** See {@link releaseLosses}. */
export const releaseLossesCommand: CommandDefinition<AssessLosses, LossState> = {
  name: 'release_losses',
  load: loadLosses,
  decide: releaseLosses,
};

/** The switch by hand. */
function byHand(name: string, decide: typeof freezeLosses): CommandDefinition<object, LossHoldState | undefined> {
  return { name, load: (rows) => rows.get('node_loss_holds', WHOLE_FLEET), decide };
}

/** See {@link freezeLosses}. */
export const freezeLossesCommand = byHand('freeze_losses', freezeLosses);
/** See {@link thawLosses}. */
export const thawLossesCommand = byHand('thaw_losses', thawLosses);
