import { loadHoldings } from '../../src/commands/holdings.ts';
import { nothing } from '../../src/domain/decision.ts';
import { type Holdings, reclaim } from '../../src/domain/node/reclaim.ts';
import type { NodeState } from '../../src/domain/node/state.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';

/** Gives a node up at once, whatever was heard of it: for tests of what follows. Repeated: nothing new. */
export const loseCommand: CommandDefinition<{ node_id: string }, { node: NodeState | undefined; holdings: Holdings }> =
  {
    name: 'lose',
    async load(rows, { node_id }) {
      const [node, holdings] = await Promise.all([rows.get('fleet_nodes', node_id), loadHoldings(rows, node_id)]);
      return { node, holdings };
    },
    decide({ node_id }, { node, holdings }) {
      if (node === undefined || node.status === 'lost') return nothing();
      const { taken, follow } = reclaim(node, holdings, 'node_lost');
      const lost = { type: 'node_lost', data: { node_id, silent_ms: 300_000, ...taken } } as const;
      return { events: [{ stream: nodeStream(node_id), event: lost }, ...follow], reply: {}, bodies: [] };
    },
  };
