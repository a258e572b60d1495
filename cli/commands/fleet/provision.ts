import { Flags } from '@oclif/core';
import { requestNodeCommand } from '../../../src/commands/node.ts';
import { POOLS } from '../../../src/domain/fields.ts';
import type { NodeState } from '../../../src/domain/node/state.ts';
import { readProvisioningSettings } from '../../../src/provisioning/config.ts';
import type { ProvisionOutcome } from '../../../src/provisioning/outcome.ts';
import type { ProvisionRequest } from '../../../src/provisioning/plan.ts';
import type { ProvisioningPorts, ProvisionOptions } from '../../../src/provisioning/ports.ts';
import { checkRequest, nextStep, provisionNode, resumeNode, retryNode } from '../../../src/provisioning/provision.ts';
import { systemPorts } from '../../../src/provisioning/system-ports.ts';
import { resolveNode } from '../../../src/read/resolve-node.ts';
import { type FleetChoice, operatorActor } from '../../connection.ts';
import { refusalFailure, usageFailure } from '../../failure.ts';
import { dryRunFlag, OperatorCommand } from '../../operator-command.ts';
import { outcomeJson, outcomeLine } from '../../output/outcome.ts';
import {
  failureOf,
  nextStepLine,
  planLine,
  progressLine,
  provisionedJson,
  provisionedLine,
} from '../../output/provision.ts';
import { untilStopped } from '../../until-stopped.ts';

const MOST_AT_ONCE = 10;
const NEW = ['pool', 'region', 'type', 'image', 'placement-group', 'name', 'count'];

/** `fleet provision`: from a request to an enrolled node, and on from wherever an earlier run ended. */
export default class FleetProvision extends OperatorCommand {
  static override summary = 'Create a server for a new node and wait until its agent has enrolled.';
  static override description =
    'Everything is checked before anything is written. From then on each step is an event, and a run that ends in any way, ' +
    'Ctrl-C included, is continued by --resume. A node whose provisioning failed begins again with --retry, which deletes the ' +
    'server that it has.';
  static override examples = [
    '<%= config.bin %> fleet provision --pool application --region fsn1 --type cx33',
    '<%= config.bin %> fleet provision --pool build --region nbg1 --type cax21 --count 3',
    '<%= config.bin %> fleet provision --pool build --region nbg1 --type cax21 --dry-run',
    '<%= config.bin %> fleet provision --resume app-fsn1-7k2m',
  ];
  static override flags = {
    pool: Flags.option({ options: POOLS, summary: 'The pool of the new node.' })(),
    region: Flags.string({ summary: 'Where: a location of the provider, such as fsn1.', helpValue: 'LOCATION' }),
    type: Flags.string({ summary: 'The server type, such as cx33.', helpValue: 'TYPE' }),
    image: Flags.string({ summary: 'The image [default: ubuntu-24.04].', helpValue: 'IMAGE' }),
    'placement-group': Flags.string({ summary: 'A placement group of the project.', helpValue: 'NAME' }),
    name: Flags.string({ summary: 'A name of your own, for the node and its server.', helpValue: 'NAME' }),
    count: Flags.integer({ summary: 'So many nodes at once.', default: 1, min: 1, max: MOST_AT_ONCE }),
    resume: Flags.string({ summary: 'Go on with a node.', helpValue: 'NODE', exclusive: ['retry', ...NEW] }),
    retry: Flags.string({ summary: 'Begin again with a failed node.', helpValue: 'NODE', exclusive: NEW }),
    wait: Flags.boolean({ summary: 'Wait until the agent has enrolled.', default: true, allowNo: true }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { flags } = await this.parse(FleetProvision);
    const ports = await this.ports(flags);
    const reference = flags.resume ?? flags.retry;
    if (reference !== undefined) {
      const node = await this.node(reference, flags);
      if (flags['dry-run']) return this.sayNextStep(node, flags.retry !== undefined);
      const work = flags.retry === undefined ? resumeNode : retryNode;
      return this.report(await this.watched(1, flags.wait, (options) => [work(ports, node.node_id, options)]));
    }
    const request = newNode(flags);
    if (flags['dry-run']) return this.sayPlan(ports, request, flags);
    const { count } = flags;
    return this.report(
      await this.watched(count, flags.wait, (options) =>
        Array.from({ length: count }, () => provisionNode(ports, request, options)),
      ),
    );
  }

  private async ports(flags: FleetChoice): Promise<ProvisioningPorts> {
    const { variables, databaseUrl } = await this.environment(flags);
    const read = readProvisioningSettings(variables);
    if (!read.ok) throw usageFailure(read.message, 'see docs/configuration.md');
    return systemPorts({
      databaseUrl,
      pool: await this.pool(flags),
      transactor: await this.transactor(flags),
      actor: operatorActor(variables),
      settings: read.settings,
    });
  }

  private async node(reference: string, flags: FleetChoice): Promise<NodeState> {
    const node = await this.view(flags, (view) => resolveNode(view, reference));
    if (!node.ok) throw refusalFailure(node.refusal);
    return node.value;
  }

  /** Runs the work with progress on the terminal, until it is done or stopped. */
  private async watched(
    count: number,
    wait: boolean,
    work: (options: ProvisionOptions) => Promise<ProvisionOutcome>[],
  ): Promise<readonly ProvisionOutcome[]> {
    const onProgress: ProvisionOptions['onProgress'] = (progress) => this.log('%s', progressLine(progress, count > 1));
    let outcomes: readonly PromiseSettledResult<ProvisionOutcome>[] = [];
    await untilStopped(async (signal) => {
      outcomes = await Promise.allSettled(work({ signal, wait, onProgress }));
    });
    // Every run has ended by now, so that a fault of one takes nothing away from under the others.
    return outcomes.map((settled) => {
      if (settled.status === 'rejected') throw settled.reason;
      return settled.value;
    });
  }

  private report(outcomes: readonly ProvisionOutcome[]) {
    const [only, ...others] = outcomes;
    if (only?.ok === false && others.length === 0) throw failureOf(only);
    for (const outcome of outcomes) {
      this.log('%s', provisionedLine(outcome));
      if (!outcome.ok) process.exitCode = failureOf(outcome).exitCode;
    }
    return { nodes: outcomes.map(provisionedJson) };
  }

  private async sayPlan(ports: ProvisioningPorts, request: ProvisionRequest, flags: FleetChoice) {
    const plan = await checkRequest(ports, request);
    if (!plan.ok) throw failureOf({ ok: false, nodeId: null, refusals: plan.refusals, events: [] });
    const { nodeId, name, placement } = plan.value;
    const command = {
      node_id: nodeId,
      name,
      pool: request.pool,
      provider: 'hetzner',
      region: request.region,
      server_type: request.serverType,
      image: request.image,
      placement_group: request.placementGroup,
    } as const;
    const done = await this.decide(requestNodeCommand, command, { ...flags, 'dry-run': true });
    this.log('%s', outcomeLine(done, planLine(name, placement), `${name} exists`));
    return { name, ...outcomeJson(done) };
  }

  private sayNextStep(node: NodeState, retry: boolean) {
    const step = nextStep(node);
    if (retry && step !== 'failed') {
      const { node_id, provision_state } = node;
      throw refusalFailure({ code: 'node_not_failed', details: { node_id, provision_state } });
    }
    this.log('%s', nextStepLine(node, step, retry));
    return {
      node_id: node.node_id,
      name: node.name,
      dry_run: true,
      provision_state: node.provision_state,
      next_step: step,
    };
  }
}

function newNode(flags: {
  readonly pool?: ProvisionRequest['pool'] | undefined;
  readonly region?: string | undefined;
  readonly type?: string | undefined;
  readonly image?: string | undefined;
  readonly 'placement-group'?: string | undefined;
  readonly name?: string | undefined;
  readonly count: number;
}): ProvisionRequest {
  const { pool, region, type, image = 'ubuntu-24.04', name, count } = flags;
  if (pool === undefined || region === undefined || type === undefined) {
    throw usageFailure('a new node needs --pool, --region and --type', 'or name a node with --resume or --retry');
  }
  if (name !== undefined && count > 1) throw usageFailure('--name is for one node', 'leave it out, or --count');
  return {
    pool,
    region,
    serverType: type,
    image,
    placementGroup: flags['placement-group'] ?? null,
    ...(name === undefined ? {} : { name }),
  };
}
