import { recoverNode } from '../domain/node/recover.ts';
import { isLossDue, type SweepNode, type SweepState, sweepNode } from '../domain/node/sweep.ts';
import { WHOLE_FLEET } from '../domain/pool/state.ts';
import { SCHEDULER } from '../domain/scheduler/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import { type AgentCommand, loadAgent } from './agent.ts';
import { loadHoldings } from './holdings.ts';

/** See {@link sweepNode}. */
export const sweepNodeCommand: CommandDefinition<SweepNode, SweepState> = {
  name: 'sweep_node',
  async load(rows, command) {
    const { node_id } = command;
    const [node, liveness, scheduler, freeze] = await Promise.all([
      rows.get('fleet_nodes', node_id),
      rows.get('node_liveness', node_id),
      rows.get('scheduler', SCHEDULER),
      rows.get('node_loss_holds', WHOLE_FLEET),
    ]);
    const due = isLossDue(command, { node, liveness, scheduler });
    const [hold, holdings] = await Promise.all([
      node && rows.get('node_loss_holds', node.pool),
      due ? loadHoldings(rows, node_id) : undefined,
    ]);
    return { node, liveness, scheduler, hold, freeze, holdings };
  },
  decide: sweepNode,
};

/** See {@link recoverNode}. */
export const recoverNodeCommand: CommandDefinition<AgentCommand, Parameters<typeof recoverNode>[1]> = {
  name: 'recover_node',
  load: loadAgent,
  decide: recoverNode,
};
