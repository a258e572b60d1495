import { Flags } from '@oclif/core';
import type { NodeStatus } from '../../../src/domain/node/state.ts';
import { type FleetList as List, type ListedNode, listFleet } from '../../../src/read/fleet-list.ts';
import { summarize } from '../../../src/read/reclamation.ts';
import { describeConflict } from '../../../src/read/why.ts';
import { atFlag, poolFlag } from '../../arguments.ts';
import { OperatorCommand } from '../../operator-command.ts';
import { ago, orDash } from '../../output/format.ts';
import { heldLines, lossesJson } from '../../output/losses.ts';
import { momentJson, pastLines } from '../../output/moment-line.ts';
import { cpus, disk, memory, nodeJson } from '../../output/node.ts';
import { reclamationJson, reclamationLine } from '../../output/reclamation.ts';
import { tableLines } from '../../output/table.ts';

const STATUSES: readonly NodeStatus[] = [
  'provisioning',
  'active',
  'unhealthy',
  'draining',
  'offline',
  'lost',
  'revoked',
  'retired',
];

/** `fleet list`: one line a node. */
export default class FleetList extends OperatorCommand {
  static override summary = 'List the nodes: pool, status, capacity, when each was last heard.';
  static override examples = [
    '<%= config.bin %> fleet list',
    '<%= config.bin %> fleet list --pool application --status active --json',
    { description: 'The fleet as it was an hour ago:', command: '<%= config.bin %> fleet list --at 1h' },
  ];
  static override flags = {
    at: atFlag,
    pool: poolFlag,
    status: Flags.option({ options: STATUSES, summary: 'Only nodes of this status.' })(),
  };

  async run() {
    const { flags } = await this.parse(FleetList);
    const list = await this.view(flags, (view) => listFleet(view, { pool: flags.pool, status: flags.status }));
    this.logLines(lines(list));
    return {
      ...momentJson(list.moment),
      nodes: list.nodes.map((listed) => nodeJson(listed, list.live)),
      lost: list.reclamations.map((details) => reclamationJson(details, summarize(details))),
      losses: lossesJson(list.losses),
    };
  }
}

function lines({ nodes, live, moment, reclamations, losses }: List): string[] {
  const held = heldLines(losses);
  if (nodes.length === 0) return ['no nodes', ...held, ...pastLines(moment, live)];
  const table = tableLines<ListedNode>(nodes, [
    { heading: 'NAME', value: ({ node }) => node.name },
    { heading: 'POOL', value: ({ node }) => node.pool },
    { heading: 'REGION', value: ({ node }) => node.location ?? node.region },
    { heading: 'STATUS', value: ({ node }) => statusOf(node) },
    { heading: 'SCHEDULABLE', value: ({ node }) => (node.schedulable ? 'yes' : 'no') },
    {
      heading: 'CPU',
      value: ({ node, used }) => usedOf(node.cpu_millis, cpus(used.cpu_millis), cpus(node.cpu_millis)),
      alignRight: true,
    },
    {
      heading: 'MEMORY',
      value: ({ node, used }) => usedOf(node.memory_mb, memory(used.memory_mb), memory(node.memory_mb)),
      alignRight: true,
    },
    {
      heading: 'DISK',
      value: ({ node, used }) => usedOf(node.disk_gb, disk(used.disk_gb), disk(node.disk_gb)),
      alignRight: true,
    },
    ...(live
      ? [
          {
            heading: 'LAST SEEN',
            value: ({ lastSeenAt }: ListedNode) => ago(lastSeenAt, moment.nowMs),
            alignRight: true,
          },
        ]
      : []),
    { heading: 'AGENT', value: ({ node }) => orDash(node.agent_version) },
    { heading: 'ID', value: ({ node }) => node.node_id.slice(0, 8) },
  ]);
  const lost = reclamations.map((details) =>
    reclamationLine(details.node.name, details.node.status, summarize(details)),
  );
  return [...table, ...spaced(lost), ...conflictLines(nodes), ...spaced(held), ...pastLines(moment, live)];
}

function spaced(found: readonly string[]): string[] {
  return found.length === 0 ? [] : ['', ...found];
}

/** How much of how much; a dash where that is not known. */
function usedOf(total: number | null, used: string, all: string): string {
  return total === null ? '-' : `${used.replace(/ GB$/, '')}/${all}`;
}

/** How far provisioning has come says more than that it is going on. */
function statusOf({ status, provision_state: state, conflict }: ListedNode['node']): string {
  if (status === 'provisioning') return `provisioning (${state.replaceAll('_', ' ')})`;
  return conflict === null ? status : `${status} (identity conflict)`;
}

function conflictLines(nodes: readonly ListedNode[]): string[] {
  const lines = nodes.flatMap(({ node: { name, conflict } }) =>
    conflict === null ? [] : [`${name}: ${describeConflict(conflict)}`],
  );
  return spaced(lines);
}
