import { setTimeout as delay } from 'node:timers/promises';
import { Flags } from '@oclif/core';
import { startDrainCommand } from '../../../src/commands/node-exit.ts';
import { ok } from '../../../src/domain/result.ts';
import { type NodeOccupancy, readOccupancy } from '../../../src/read/occupancy.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { nodeArgument } from '../../arguments.ts';
import type { FleetChoice } from '../../connection.ts';
import { durationFlag } from '../../duration-flag.ts';
import { refusalFailure, usageFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { occupancyJson, occupancyLines, withoutItLines } from '../../output/occupancy.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';
import { untilStopped } from '../../until-stopped.ts';

const LOOK_MS = 1_000;

/** `fleet drain`: no new work for a node, and with --migrate its services elsewhere. */
export default class FleetDrain extends OperatorCommand {
  static override summary = 'Give a node no more work; with --migrate, move its services to other nodes first.';
  static override description =
    'What a plainly drained node has goes on there. With --migrate each service is replaced on another node, its hostnames follow once the replacement is ready, and only then is it taken down. Databases never move. At the deadline the scheduler says what is still there; nothing is stopped by force.';
  static override examples = [
    '<%= config.bin %> fleet drain app-fsn1-7k2m --dry-run',
    '<%= config.bin %> fleet drain app-fsn1-7k2m --migrate --max-in-flight 2 --deadline 1h --watch',
  ];
  static override args = { node: nodeArgument };
  static override flags = {
    migrate: Flags.boolean({ summary: 'Move its services to other nodes.' }),
    'max-in-flight': Flags.integer({
      summary: 'How many move at once, with --migrate [default: 1].',
      min: 1,
      max: 500,
    }),
    deadline: durationFlag('deadline', 'When to say what is still there.'),
    watch: Flags.boolean({ summary: 'Show what is left until the node is empty.' }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { args, flags } = await this.parse(FleetDrain);
    const { migrate, deadline } = flags;
    if (!migrate && flags['max-in-flight'] !== undefined) throw usageFailure('--max-in-flight needs --migrate');
    const before = await this.occupancy(args.node, flags);
    const { node } = before;
    const done = await this.decide(
      startDrainCommand,
      {
        node_id: node.node_id,
        migrate,
        max_in_flight: migrate ? (flags['max-in-flight'] ?? 1) : null,
        deadline_at: deadline === undefined ? (node.drain?.deadline_at ?? null) : Date.now() + deadline,
      },
      flags,
    );
    this.log('%s', outcomeLine(done, `${node.name} takes no more work`, `${node.name} was being drained so already`));
    this.logLines(done.dryRun ? withoutItLines(before) : occupancyLines(before));
    const left = flags.watch && !done.dryRun ? await this.watch(node.node_id, flags) : before;
    return { node_id: node.node_id, name: node.name, ...outcomeJson(done), ...occupancyJson(left) };
  }

  private async occupancy(reference: string, flags: FleetChoice): Promise<NodeOccupancy> {
    const read = await this.view(flags, async (view) => {
      const node = await resolveNode(view, reference);
      return node.ok ? ok(await readOccupancy(view, node.value)) : node;
    });
    if (!read.ok) throw refusalFailure(read.refusal);
    return read.value;
  }

  /** A line whenever something has changed, until nothing is left or Ctrl-C. */
  private async watch(nodeId: string, flags: FleetChoice): Promise<NodeOccupancy> {
    let left = await this.occupancy(nodeId, flags);
    await untilStopped(async (signal) => {
      for (let said = ''; !signal.aborted && left.node.status === 'draining'; ) {
        const lines = [
          ...(left.node.drain?.overdue_at == null ? [] : ['the deadline has passed']),
          ...occupancyLines(left),
        ];
        if (lines.join('\n') !== said) this.logLines(lines);
        said = lines.join('\n');
        if (left.allocations + left.leased.length + left.hostnames.length === 0) return;
        await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
        left = await this.occupancy(nodeId, flags);
      }
    });
    return left;
  }
}
