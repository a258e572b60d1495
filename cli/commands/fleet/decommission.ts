import { setTimeout as delay } from 'node:timers/promises';
import { Flags } from '@oclif/core';
import { retireNodeCommand } from '../../../src/commands/node-exit.ts';
import { ok } from '../../../src/domain/result.ts';
import { readProvisioningSettings } from '../../../src/provisioning/config.ts';
import { deleteNodeServer } from '../../../src/provisioning/delete-node-server.ts';
import type { ProvisionOutcome } from '../../../src/provisioning/outcome.ts';
import { systemPorts } from '../../../src/provisioning/system-ports.ts';
import { type NodeOccupancy, readOccupancy } from '../../../src/read/occupancy.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { nodeArgument } from '../../arguments.ts';
import { type FleetChoice, operatorActor } from '../../connection.ts';
import { refusalFailure, usageFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { occupancyJson, withoutItLines } from '../../output/occupancy.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';
import { progressLine } from '../../output/provision.ts';
import { provisionFailure } from '../../provision-failure.ts';
import { untilStopped } from '../../until-stopped.ts';

const LOOK_MS = 500;

/** `fleet decommission`: the end of a node and of its server. */
export default class FleetDecommission extends OperatorCommand {
  static override summary = 'Retire a node that is empty, revoke its certificates, and delete its server.';
  static override description =
    'The node has to be draining, offline, lost, revoked or still provisioning, with no allocation, no live lease and no hostname. A lost node whose database is stranded is kept until that is released. The server is deleted only after the node is retired; if that fails, run the command again.';
  static override examples = [
    '<%= config.bin %> fleet decommission app-fsn1-7k2m --wait 600',
    '<%= config.bin %> fleet decommission app-fsn1-7k2m --dry-run',
  ];
  static override args = { node: nodeArgument };
  static override flags = {
    wait: Flags.integer({
      summary: 'Wait so many seconds for the node to be empty.',
      default: 0,
      min: 0,
      helpValue: 'SECONDS',
    }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { args, flags } = await this.parse(FleetDecommission);
    const before = await this.occupancy(args.node, flags);
    const { node_id, name } = before.node;
    if (flags['dry-run']) this.logLines(withoutItLines(before));
    else await this.untilEmpty(before, flags);
    // Settings are read before anything is decided: a node that is retired with a server that cannot be deleted costs money.
    const ports = flags['dry-run'] ? undefined : await this.ports(flags);
    const done = await this.decide(retireNodeCommand, { node_id }, flags);
    this.log('%s', outcomeLine(done, `${name} is retired`, `${name} was retired already`));
    const document = { node_id, name, ...outcomeJson(done), ...occupancyJson(before) };
    if (ports === undefined) return { ...document, server: null };
    let outcome: ProvisionOutcome | undefined;
    await untilStopped(async (signal) => {
      outcome = await deleteNodeServer(node_id, ports, {
        signal,
        onProgress: (progress) => this.log('%s', progressLine(progress)),
      });
    });
    if (outcome?.ok !== true) throw provisionFailure(outcome?.refusals ?? [], outcome);
    return {
      ...document,
      events: [...done.events, ...outcome.events],
      changed: done.events.length + outcome.events.length > 0,
    };
  }

  private async occupancy(reference: string, flags: FleetChoice): Promise<NodeOccupancy> {
    const read = await this.view(flags, async (view) => {
      const node = await resolveNode(view, reference);
      return node.ok ? ok(await readOccupancy(view, node.value)) : node;
    });
    if (!read.ok) throw refusalFailure(read.refusal);
    return read.value;
  }

  /** Waits for as long as was asked; whether the node is empty is decided under the lock all the same. */
  private async untilEmpty(first: NodeOccupancy, flags: FleetChoice & { wait: number }): Promise<void> {
    const deadline = performance.now() + flags.wait * 1_000;
    for (let left = first; isBusy(left) && performance.now() < deadline; ) {
      await delay(LOOK_MS);
      left = await this.occupancy(first.node.node_id, flags);
    }
  }

  private async ports(flags: FleetChoice) {
    const { variables, databaseUrl } = await this.environment(flags);
    const read = readProvisioningSettings(variables);
    if (!read.ok) throw usageFailure(read.message, 'see docs/configuration.md');
    const [pool, transactor] = [await this.pool(flags), await this.transactor(flags)];
    return systemPorts({ databaseUrl, pool, transactor, actor: operatorActor(variables), settings: read.settings });
  }
}

function isBusy({ allocations, leased, hostnames }: NodeOccupancy): boolean {
  return allocations + leased.length + hostnames.length > 0;
}
