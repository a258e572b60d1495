import { recordCheckpointCommand } from '../../src/commands/checkpoint.ts';
import { loadHoldings } from '../../src/commands/holdings.ts';
import {
  recordCapacityCommand,
  recordHostFactsCommand,
  recordServerCommand,
  recordServerDeletedCommand,
  recordServerRunningCommand,
  requestNodeCommand,
} from '../../src/commands/node.ts';
import { recordFirewallCommand } from '../../src/commands/pool.ts';
import { append, following, nothing } from '../../src/domain/decision.ts';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import { POOLS } from '../../src/domain/fields.ts';
import { type Holdings, reclaim } from '../../src/domain/node/reclaim.ts';
import type { NodeState, NodeStatus } from '../../src/domain/node/state.ts';
import { nodeStream } from '../../src/domain/stream.ts';
import type { CommandDefinition } from '../../src/transactor/command.ts';
import { sample } from './events.ts';
import type { Random } from './random.ts';

/** A command and its definition, the types of both forgotten: `order.give((definition, command) => …)`. */
export interface Order {
  readonly name: string;
  give<R>(to: <C, S>(definition: CommandDefinition<C, S>, command: C) => R): R;
}

/** Forgets a command's types. */
export function order<C, S>(definition: CommandDefinition<C, S>, command: C): Order {
  return { name: definition.name, give: (to) => to(definition, command) };
}

/** Asks for another node. */
export function requestNode(random: Random): Order {
  return order(requestNodeCommand, {
    node_id: random.uuid(),
    name: `node-${random.hex(12)}`,
    pool: random.pick(POOLS) ?? 'build',
    provider: 'hetzner',
    region: 'fsn1',
    server_type: 'cx33',
    image: 'debian-13',
    placement_group: random.percent(50) ? 'spread-1' : null,
  });
}

/** Converges a pool's firewall to one of sixteen sets of rules. */
export function convergeFirewall(random: Random): Order {
  const pool = random.pick(POOLS) ?? 'build';
  return order(recordFirewallCommand, { pool, firewall_id: 7, rules_sha256: random.hex(1).repeat(64) });
}

/** Records a capacity. */
export function recordCapacity(random: Random, { node_id }: NodeState): Order {
  const cpu_millis = random.integer(1, 8) * 1_000;
  const rest = { memory_mb: 7_168, disk_gb: 70, architecture: 'x86' } as const;
  return order(recordCapacityCommand, { node_id, cpu_millis, ...rest });
}

/** Records a server, created or adopted. */
export function recordServer(random: Random, { node_id }: NodeState): Order {
  const server_id = random.integer(1, 1_000_000);
  return order(recordServerCommand, { node_id, server_id, adopted: random.percent(30) });
}

/** Records a running server under some address. */
export function recordRunning(random: Random, node: NodeState): Order {
  return order(recordServerRunningCommand, {
    node_id: node.node_id,
    server_id: node.server_id ?? random.integer(1, 1_000_000),
    server_type: node.server_type,
    location: node.region,
    image: node.image,
    public_ipv4: `203.0.113.${random.integer(1, 254)}`,
    public_ipv6: null,
    private_ipv4: null,
  });
}

/** An agent reports its host, which now and then has another kernel. */
export function reportFacts(random: Random, fingerprint: string): Order {
  const facts = {
    cpu_count: 4,
    memory_mb: 7_750,
    kernel: `6.12.${random.integer(40, 60)}`,
    docker_version: null,
    agent_version: '0.1.0',
    bridge_netfilter: true,
    runtime: 'process' as const,
    // Every other host serves hostnames.
    ingress: Number.parseInt(fingerprint.slice(0, 1), 16) % 2 === 0 ? ('embedded' as const) : null,
  };
  return order(recordHostFactsCommand, { fingerprint, facts });
}

/** Records that the server is gone. */
export function deleteServer({ node_id }: NodeState): Order {
  return order(recordServerDeletedCommand, { node_id });
}

/** A checkpoint of the log was signed. */
export function signCheckpoint(random: Random, now: number): Order {
  const [hash, key_sha256] = [random.hex(64), random.hex(64)];
  return order(recordCheckpointCommand, { position: random.integer(1, 1_000), hash, key_sha256, signed_at: now });
}

const drained = (node_id: string): FleetEvent => ({
  type: 'node_drain_started',
  data: { ...sample.node_drain_started.data, node_id },
});

const cancelled = (node_id: string): FleetEvent => ({ type: 'node_drain_cancelled', data: { node_id } });
const overdue = (node_id: string): FleetEvent => ({
  type: 'node_drain_overdue',
  data: { node_id, blocking_instance_ids: [] },
});
const retired = (node_id: string): FleetEvent => ({ type: 'node_retired', data: { node_id } });
const coordinates = (node_id: string): FleetEvent => ({
  type: 'node_mesh_coordinator_set',
  data: { node_id, coordinator: true },
});

/** What may become of a node in each status, with nothing on it. */
const changes: Readonly<Record<NodeStatus, readonly ((node_id: string) => FleetEvent)[]>> = {
  provisioning: [],
  active: [
    (node_id) => ({ type: 'node_became_unhealthy', data: { node_id, silent_ms: 90_000 } }),
    drained,
    drained,
    coordinates,
  ],
  unhealthy: [(node_id) => ({ type: 'node_recovered', data: { node_id } }), drained],
  draining: [retired, cancelled, overdue, (node_id) => ({ type: 'node_taken_offline', data: { node_id } })],
  offline: [retired],
  lost: [retired],
  revoked: [retired],
  retired: [],
};

/** What a change is decided on. */
interface ChangeState {
  readonly node: NodeState | undefined;
  readonly holdings: Holdings;
}

/** Stands for the commands that take a node from one status to another. One that has something is given up with all it has, or stays. */
const changeStatusCommand: CommandDefinition<{ node_id: string; choice: number }, ChangeState> = {
  name: 'change_status',
  async load(rows, { node_id }) {
    const [node, holdings] = await Promise.all([rows.get('fleet_nodes', node_id), loadHoldings(rows, node_id)]);
    return { node, holdings };
  },
  decide({ node_id, choice }, { node, holdings }) {
    if (node === undefined) return nothing();
    const leavable = ['active', 'unhealthy', 'draining'].includes(node.status);
    if (leavable && choice % 5 === 0) {
      const { taken, follow } = reclaim(node, holdings, choice % 2 === 0 ? 'node_lost' : 'node_revoked');
      const event: FleetEvent =
        choice % 2 === 0
          ? { type: 'node_lost', data: { node_id, silent_ms: 300_000, ...taken } }
          : { type: 'node_revoked', data: { node_id, ...taken } };
      return following(append(nodeStream(node_id), event), follow);
    }
    const possible = changes[node.status];
    const change = possible[choice % possible.length]?.(node_id);
    const leaves = change?.type === 'node_retired' || change?.type === 'node_taken_offline';
    const holds = holdings.allocations.length + holdings.jobs.length > 0;
    return change === undefined || (leaves && holds) ? nothing() : append(nodeStream(node_id), change);
  },
};

/** A node becomes unhealthy, recovers, is drained, is lost or retired. */
export function changeStatus(random: Random, { node_id }: NodeState): Order {
  return order(changeStatusCommand, { node_id, choice: random.integer(0, 59) });
}
