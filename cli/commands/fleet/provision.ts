import { Flags } from '@oclif/core';
import { requestNodeCommand } from '../../../src/commands/node.ts';
import { POOLS } from '../../../src/domain/fields.ts';
import type { NodeState } from '../../../src/domain/node/state.ts';
import { caBundleLines } from '../../../src/provisioning/ca-bundle.ts';
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
import { outcomeJson } from '../../output/outcome.ts';
import { nextStepLine, progressLine, provisionedLine } from '../../output/provision.ts';
import { provisionFailure } from '../../provision-failure.ts';
import { untilStopped } from '../../until-stopped.ts';

const OF_A_NEW_NODE = ['pool', 'region', 'type', 'image', 'placement-group', 'name'];

/** `fleet provision`: from an order to an enrolled node, and on from wherever an earlier run ended. */
export default class FleetProvision extends OperatorCommand {
  static override summary = 'Create a server for a new node and wait until its agent has enrolled.';
  static override description =
    'Everything is checked before anything is written. From then on each step is an event, and a run that ends in any way, ' +
    'Ctrl-C included, is continued by --resume. A node whose provisioning failed begins again with --retry, which deletes the ' +
    'server that it has.';
  static override examples = [
    '<%= config.bin %> fleet provision --pool application --region fsn1 --type cx33',
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
    resume: Flags.string({ summary: 'Go on with a node.', helpValue: 'NODE', exclusive: ['retry', ...OF_A_NEW_NODE] }),
    retry: Flags.string({ summary: 'Begin again with a failed node.', helpValue: 'NODE', exclusive: OF_A_NEW_NODE }),
    wait: Flags.boolean({ summary: 'Wait until the agent has enrolled.', default: true, allowNo: true }),
    'dry-run': dryRunFlag,
  };

  async run() {
    const { flags } = await this.parse(FleetProvision);
    const reference = flags.resume ?? flags.retry;
    if (reference !== undefined) {
      const node = await this.node(reference, flags);
      if (flags['dry-run']) return this.sayNextStep(node, flags.retry !== undefined);
      const ports = await this.ports(flags);
      const goOn = flags.retry === undefined ? resumeNode : retryNode;
      return this.watched((options) => goOn(ports, node.node_id, { ...options, wait: flags.wait }));
    }
    const order = newNode(flags);
    const ports = await this.ports(flags);
    if (flags['dry-run']) return this.sayOrder(ports, order, flags);
    return this.watched((options) => provisionNode(ports, order, { ...options, wait: flags.wait }));
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

  /** Does the work, with its progress in lines, until it is done or stopped. */
  private async watched(work: (options: ProvisionOptions) => Promise<ProvisionOutcome>) {
    let outcome: ProvisionOutcome | undefined;
    await untilStopped(async (signal) => {
      outcome = await work({ signal, onProgress: (progress) => this.log('%s', progressLine(progress)) });
    });
    if (outcome?.ok !== true) throw provisionFailure(outcome?.refusals ?? [], outcome);
    const { nodeId, name, state, events } = outcome;
    this.log('%s', provisionedLine(outcome));
    return { node_id: nodeId, name, provision_state: state, ...outcomeJson({ dryRun: false, events, reply: {} }) };
  }

  /** Checks an order at the provider and against the fleet. */
  private async sayOrder(ports: ProvisioningPorts, order: ProvisionRequest, flags: FleetChoice) {
    const plan = await checkRequest(ports, order);
    if (!plan.ok) throw provisionFailure(plan.refusals);
    const { nodeId, name, caBundle } = plan.value;
    const { pool, region, serverType, image, placementGroup } = order;
    const forecast = await this.decide(
      requestNodeCommand,
      {
        node_id: nodeId,
        name,
        pool,
        provider: 'hetzner',
        region,
        server_type: serverType,
        image,
        placement_group: placementGroup,
      },
      { ...flags, 'dry-run': true },
    );
    this.logLines([`would order ${name}: ${serverType} in ${region} with ${image}`, ...caBundleLines(caBundle)]);
    return { node_id: null, name, provision_state: null, ...outcomeJson(forecast) };
  }

  private sayNextStep(node: NodeState, retry: boolean) {
    const { node_id, name, provision_state } = node;
    const step = nextStep(node);
    if (retry && step !== 'failed') {
      throw refusalFailure({ code: 'node_not_failed', details: { node_id, provision_state } });
    }
    this.log('%s', nextStepLine(node, step, retry));
    return { node_id, name, provision_state, dry_run: true, next_step: step };
  }
}

interface NewNodeFlags {
  readonly pool?: ProvisionRequest['pool'] | undefined;
  readonly region?: string | undefined;
  readonly type?: string | undefined;
  readonly image?: string | undefined;
  readonly 'placement-group'?: string | undefined;
  readonly name?: string | undefined;
}

function newNode({ pool, region, type, image = 'ubuntu-24.04', name, ...flags }: NewNodeFlags): ProvisionRequest {
  if (pool === undefined || region === undefined || type === undefined) {
    const missing = Object.entries({ pool, region, type }).flatMap(([flag, value]) =>
      value === undefined ? `--${flag}` : [],
    );
    throw usageFailure(`a new node needs ${missing.join(', ')}`, 'or name a node with --resume or --retry');
  }
  const placementGroup = flags['placement-group'] ?? null;
  return { pool, region, serverType: type, image, placementGroup, ...(name === undefined ? {} : { name }) };
}
