import { recordServerDeletedCommand, requestNodeCommand, retryProvisioningCommand } from '../commands/node.ts';
import type { NodeState } from '../domain/node/state.ts';
import { deleteServer } from '../hetzner/delete-server.ts';
import type { ResolvedPlacement } from '../hetzner/validate.ts';
import { awaitEnrollment, awaitServer } from './await-server.ts';
import { ensureServer, recordCapacityOf } from './ensure-server.ts';
import type { NodeLock } from './node-lock.ts';
import {
  done,
  type ProvisionOutcome,
  retryRemedy,
  type StepResult,
  stop,
  stopForProvider,
  stopForRule,
} from './outcome.ts';
import { type NodePlan, type ProvisionRequest, planNode } from './plan.ts';
import type { ProvisioningPorts, ProvisionOptions } from './ports.ts';
import { expectingTrouble, Run, underLock } from './run.ts';

/**
 * Provisions a node, from the check of the request to the enrolled agent. Everything that an operator may have got wrong is refused
 * before the node exists; from then on each step is an event, and a run that ends anywhere is continued by {@link resumeNode}.
 */
export async function provisionNode(
  ports: ProvisioningPorts,
  request: ProvisionRequest,
  options: ProvisionOptions = {},
): Promise<ProvisionOutcome> {
  const nodeId = request.nodeId ?? newUuid(ports.randomBytes);
  return underLock(nodeId, ports, options, async (run, lock) => {
    const known = await ports.readNode(nodeId);
    if (known !== undefined) return advance(run, lock, options);
    const planned = await planNode(run, request);
    if (!planned.ok) return run.refused(planned.refusals, false);
    const asked = await requestNode(run, request, planned.value);
    if (!asked.ok) return run.refused(asked.refusals, false);
    return advance(run, lock, options, planned.value.placement);
  });
}

/** Goes on with a node from wherever it is; with one that is provisioned already, nothing is done. */
export function resumeNode(
  ports: ProvisioningPorts,
  nodeId: string,
  options: ProvisionOptions = {},
): Promise<ProvisionOutcome> {
  return underLock(nodeId, ports, options, async (run, lock) => {
    const known = await ports.readNode(nodeId);
    return known === undefined ? unknown(run) : advance(run, lock, options);
  });
}

/**
 * Begins again with a node whose provisioning failed: its server, billed all along, is deleted (the recorded one and any that carries
 * its label), then the node goes back to the start and is provisioned.
 */
export function retryNode(
  ports: ProvisioningPorts,
  nodeId: string,
  options: ProvisionOptions = {},
): Promise<ProvisionOutcome> {
  return underLock(nodeId, ports, options, async (run, lock) => {
    const node = await ports.readNode(nodeId);
    if (node === undefined) return unknown(run);
    const restarted = await restart(run, node);
    return restarted.ok ? advance(run, lock, options) : run.refused(restarted.refusals);
  });
}

/** Checks a request as {@link provisionNode} does, and does nothing. */
export async function checkRequest(
  ports: ProvisioningPorts,
  request: ProvisionRequest,
  options: ProvisionOptions = {},
): Promise<StepResult<NodePlan>> {
  const run = new Run(request.nodeId ?? newUuid(ports.randomBytes), ports, options);
  let planned: StepResult<NodePlan> | undefined;
  const outcome = await expectingTrouble(run, undefined, async () => {
    planned = await planNode(run, request);
    return run.refused([]);
  });
  return planned ?? { ok: false, refusals: outcome.ok ? [] : outcome.refusals };
}

/** What is to be done next with a node. The row alone decides, so that any process can go on where another one ended. */
export type NextStep = 'ensure_server' | 'record_capacity' | 'await_server' | 'await_enrollment' | 'done' | 'failed';

/** See {@link NextStep}. An agent may enrol before its server was recorded: then that is made up for. */
export function nextStep(node: NodeState): NextStep {
  switch (node.provision_state) {
    case 'failed':
      return 'failed';
    case 'pending':
      return 'ensure_server';
    case 'server_requested':
      return 'await_server';
    case 'awaiting_enrollment':
      return node.cpu_millis === null ? 'record_capacity' : 'await_enrollment';
    case 'enrolled':
      if (node.server_id === null) return 'ensure_server';
      return node.cpu_millis === null ? 'record_capacity' : 'done';
  }
}

async function advance(
  run: Run,
  lock: NodeLock,
  { wait = true }: ProvisionOptions,
  planned?: ResolvedPlacement,
): Promise<ProvisionOutcome> {
  for (;;) {
    await lock.check();
    const node = await run.node();
    const step = nextStep(node);
    if (step === 'done' || (step === 'await_enrollment' && !wait)) {
      return { ok: true, nodeId: run.nodeId, name: node.name, state: node.provision_state, events: run.events };
    }
    const taken = await takeStep(run, lock, node, step, planned);
    if (!taken.ok) return run.refused(taken.refusals);
  }
}

async function takeStep(
  run: Run,
  lock: NodeLock,
  node: NodeState,
  step: Exclude<NextStep, 'done'>,
  planned: ResolvedPlacement | undefined,
): Promise<StepResult<unknown>> {
  switch (step) {
    case 'ensure_server':
      return ensureServer(run, node, lock, planned);
    case 'await_server':
      return node.server_id === null ? ensureServer(run, node, lock, planned) : awaitServer(run, node, node.server_id);
    case 'record_capacity':
      return recordCapacityOf(run, node.node_id, node.server_type);
    case 'await_enrollment':
      return awaitEnrollment(run, node);
    case 'failed':
      return stop(
        'provisioning_failed',
        `provisioning of ${node.name} failed: ${node.failure_reason?.replaceAll('_', ' ') ?? 'unknown reason'}`,
        retryRemedy(node.name),
      );
  }
}

/** Appends the request; a generated name that another operator took in this moment is refused like a given one. */
async function requestNode(run: Run, request: ProvisionRequest, { name }: NodePlan): Promise<StepResult<unknown>> {
  const { pool, region, serverType, image, placementGroup } = request;
  return run.append(
    'request',
    requestNodeCommand,
    {
      node_id: run.nodeId,
      name,
      pool,
      provider: 'hetzner',
      region,
      server_type: serverType,
      image,
      placement_group: placementGroup,
    },
    `node ${name} (${run.nodeId}) is requested`,
  );
}

async function restart(run: Run, node: NodeState): Promise<StepResult<unknown>> {
  const { node_id, name, server_id, provision_state } = node;
  if (provision_state !== 'failed')
    return stopForRule({ code: 'node_not_failed', details: { node_id, provision_state } });
  run.say('delete', `deleting the server of ${name}, if there is one`);
  // The recorded one first; then any other that carries the label, such as that of a create which came late.
  for (const serverId of server_id === null ? [null] : [server_id, null]) {
    const deleted = await deleteServer(run.api, { nodeId: node_id, serverId }, run.waiting);
    if (!deleted.ok) return stopForProvider([deleted.refusal]);
    if (deleted.value === 'deleting') {
      return stop(
        'server_being_deleted',
        `the server of ${name} is still being deleted`,
        'use --retry again when it is gone',
      );
    }
  }
  const recorded = await run.append('delete', recordServerDeletedCommand, { node_id }, `the server of ${name} is gone`);
  if (!recorded.ok) return recorded;
  const retried = await run.append('delete', retryProvisioningCommand, { node_id }, `${name} begins again`);
  return retried.ok ? done(undefined) : retried;
}

function unknown(run: Run): ProvisionOutcome {
  return run.refused(stopForRule({ code: 'node_unknown', details: { node: run.nodeId } }).refusals, false);
}

/** A random UUID (RFC 9562 version 4) from the injected source. */
function newUuid(randomBytes: (size: number) => Buffer): string {
  const bytes = randomBytes(16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
