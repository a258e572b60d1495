import { nextInstanceId } from '../domain/deployment/instance-id.ts';
import { type MigrateInstance, type MigrateState, migrateInstance } from '../domain/deployment/migrate.ts';
import type { InstanceStatus } from '../domain/deployment/state.ts';
import type { EventData } from '../domain/event/catalogue.ts';
import {
  cancelDrain,
  type DrainState,
  noteOverdueDrain,
  type Occupancy,
  type StartDrain,
  setMeshCoordinator,
  startDrain,
  takeOffline,
} from '../domain/node/drain.ts';
import { type RetireState, retireNode, revokeNode } from '../domain/node/retire.ts';
import type { NodeState } from '../domain/node/state.ts';
import type { CommandDefinition } from '../transactor/command.ts';
import {
  activeAllocationsOfNode,
  certificatesInForce,
  databasesOfNode,
  instancesOfNode,
  jobsLeasedTo,
  openJobsOfNode,
  routesOfNode,
} from '../transactor/finders.ts';
import type { Rows } from '../transactor/row-view.ts';
import { loadHoldings } from './holdings.ts';

type OfNode = { readonly node_id: string };

const ON_NODE = ['reserved', 'deploying', 'ready', 'error', 'draining'] as const satisfies readonly InstanceStatus[];

/** See {@link startDrain}. */
export const startDrainCommand: CommandDefinition<StartDrain, NodeState | undefined> = {
  name: 'start_drain',
  load: (rows, { node_id }) => rows.get('fleet_nodes', node_id),
  decide: startDrain,
};

/** The instances of a node, each with the one that replaces it. */
async function loadInstances(rows: Rows, node_id: string): Promise<Omit<DrainState, 'node'>> {
  const instances = await rows.find(instancesOfNode, { node_id, statuses: ON_NODE });
  const successors = await Promise.all(instances.map((one) => rows.get('application_instances', nextInstanceId(one))));
  return { instances, successors };
}

async function loadDrain(rows: Rows, { node_id }: OfNode): Promise<DrainState> {
  const [node, instances] = await Promise.all([rows.get('fleet_nodes', node_id), loadInstances(rows, node_id)]);
  return { node, ...instances };
}

/** See {@link cancelDrain}. */
export const cancelDrainCommand: CommandDefinition<OfNode, DrainState> = {
  name: 'cancel_drain',
  load: loadDrain,
  decide: cancelDrain,
};

/** See {@link noteOverdueDrain}. */
export const noteOverdueDrainCommand: CommandDefinition<OfNode, DrainState> = {
  name: 'note_overdue_drain',
  load: loadDrain,
  decide: noteOverdueDrain,
};

async function loadOccupancy(rows: Rows, { node_id }: OfNode): Promise<Occupancy> {
  const [node, allocations, leased, routes] = await Promise.all([
    rows.get('fleet_nodes', node_id),
    rows.find(activeAllocationsOfNode, { node_id }),
    rows.find(jobsLeasedTo, { node_id }),
    rows.find(routesOfNode, { node_id, statuses: ['active', 'publishing'] }),
  ]);
  return { node, allocations, leased, routes };
}

/** See {@link takeOffline}. */
export const takeOfflineCommand: CommandDefinition<OfNode, Occupancy> = {
  name: 'take_offline',
  load: loadOccupancy,
  decide: takeOffline,
};

/** See {@link setMeshCoordinator}. */
export const setMeshCoordinatorCommand: CommandDefinition<
  EventData<'node_mesh_coordinator_set'>,
  NodeState | undefined
> = {
  name: 'set_mesh_coordinator',
  load: (rows, { node_id }) => rows.get('fleet_nodes', node_id),
  decide: setMeshCoordinator,
};

/** See {@link retireNode}. */
export const retireNodeCommand: CommandDefinition<OfNode, RetireState> = {
  name: 'retire_node',
  async load(rows, { node_id }) {
    const [occupancy, inForce, queued, databases] = await Promise.all([
      loadOccupancy(rows, { node_id }),
      rows.find(certificatesInForce, { node_id }),
      rows.find(openJobsOfNode, { node_id, statuses: ['queued'] }),
      rows.find(databasesOfNode, { node_id, statuses: ['creating', 'ready', 'error', 'stranded'] }),
    ]);
    return { ...occupancy, inForce, queued, databases };
  },
  decide: retireNode,
};

/** See {@link revokeNode}. */
export const revokeNodeCommand: CommandDefinition<OfNode, Parameters<typeof revokeNode>[1]> = {
  name: 'revoke_node',
  async load(rows, { node_id }) {
    const [node, inForce, holdings] = await Promise.all([
      rows.get('fleet_nodes', node_id),
      rows.find(certificatesInForce, { node_id }),
      loadHoldings(rows, node_id),
    ]);
    return { node, inForce, holdings };
  },
  decide: revokeNode,
};

/** See {@link migrateInstance}. */
export const migrateInstanceCommand: CommandDefinition<MigrateInstance, MigrateState> = {
  name: 'migrate_instance',
  async load(rows, { instance_id }) {
    const instance = await rows.get('application_instances', instance_id);
    const node_id = instance?.node_id ?? undefined;
    const [deployment, node, successor, onNode] = await Promise.all([
      instance && rows.get('deployments', instance.deployment_id),
      node_id === undefined ? undefined : rows.get('fleet_nodes', node_id),
      instance && rows.get('application_instances', nextInstanceId(instance)),
      node_id === undefined ? undefined : loadInstances(rows, node_id),
    ]);
    const inFlight = onNode?.successors.filter((one) => one !== undefined).length ?? 0;
    return { instance, deployment, node, successor, inFlight };
  },
  decide: migrateInstance,
};
