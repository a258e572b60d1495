import type { CaState } from '../domain/ca/state.ts';
import type { Decision, DecisionTime } from '../domain/decision.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import { admitNode } from '../domain/node/admit.ts';
import { type HostFacts, recordHostFacts } from '../domain/node/host-facts.ts';
import {
  armSecret,
  type FailProvisioning,
  failProvisioning,
  recordCapacity,
  recordServer,
  recordServerDeleted,
  recordServerRunning,
  requestNode,
  retryProvisioning,
} from '../domain/node/provision.ts';
import { armReenrollment } from '../domain/node/reenroll.ts';
import type { NodeState } from '../domain/node/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import { certificatesOfNode, nodeByName } from '../transactor/finders.ts';
import { type AgentCommand, loadAgent } from './agent.ts';
import { loadCa } from './ca.ts';

interface NodeAndCa {
  readonly node: NodeState | undefined;
  readonly ca: CaState | undefined;
}

/** A command that is decided on one node's row alone. */
function onNode<C extends { readonly node_id: string }>(
  name: string,
  decide: (command: C, node: NodeState | undefined, time: DecisionTime) => Decision,
): CommandDefinition<C, NodeState | undefined> {
  return {
    name,
    load: (rows, command) => rows.get('fleet_nodes', command.node_id),
    decide,
  };
}

/** A command that is decided on one node's row and the fleet's CA. */
function onNodeAndCa<C extends { readonly node_id: string }>(
  name: string,
  decide: (command: C, state: NodeAndCa, time: DecisionTime) => Decision,
): CommandDefinition<C, NodeAndCa> {
  return {
    name,
    async load(rows, { node_id }) {
      const [node, ca] = await Promise.all([rows.get('fleet_nodes', node_id), loadCa(rows)]);
      return { node, ca };
    },
    decide,
  };
}

/** See {@link requestNode}. */
export const requestNodeCommand: CommandDefinition<
  EventData<'node_provisioning_requested'>,
  Parameters<typeof requestNode>[1]
> = {
  name: 'request_node',
  async load(rows, { node_id, name }) {
    const [node, [named]] = await Promise.all([rows.get('fleet_nodes', node_id), rows.find(nodeByName, { name })]);
    return { node, named };
  },
  decide: requestNode,
};

/** See {@link recordCapacity}. */
export const recordCapacityCommand = onNode('record_capacity', recordCapacity);
/** See {@link armSecret}. */
export const armSecretCommand = onNodeAndCa('arm_secret', armSecret);
/** See {@link armReenrollment}. */
export const armReenrollmentCommand = onNodeAndCa('arm_reenrollment', armReenrollment);
/** See {@link recordServer}. */
export const recordServerCommand = onNode('record_server', recordServer);
/** See {@link recordServerRunning}. */
export const recordServerRunningCommand = onNode('record_server_running', recordServerRunning);
/** See {@link retryProvisioning}. */
export const retryProvisioningCommand = onNode('retry_provisioning', retryProvisioning);
/** See {@link recordServerDeleted}. */
export const recordServerDeletedCommand = onNode('record_server_deleted', recordServerDeleted);

/** See {@link failProvisioning}. */
export const failProvisioningCommand: CommandDefinition<FailProvisioning, Parameters<typeof failProvisioning>[1]> = {
  name: 'fail_provisioning',
  async load(rows, { node_id }) {
    const [node, certificates] = await Promise.all([
      rows.get('fleet_nodes', node_id),
      rows.find(certificatesOfNode, { node_id }),
    ]);
    return { node, certificates };
  },
  decide: failProvisioning,
};

/** See {@link admitNode}. */
export const admitNodeCommand: CommandDefinition<{ node_id: string }, Parameters<typeof admitNode>[1]> = {
  name: 'admit_node',
  async load(rows, { node_id }) {
    const [node, liveness] = await Promise.all([rows.get('fleet_nodes', node_id), rows.get('node_liveness', node_id)]);
    return { node, liveness };
  },
  decide: admitNode,
};

/** See {@link recordHostFacts}. */
export const recordHostFactsCommand: CommandDefinition<
  AgentCommand & { facts: HostFacts },
  Parameters<typeof recordHostFacts>[1]
> = { name: 'record_host_facts', load: loadAgent, decide: recordHostFacts };
