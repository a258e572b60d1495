import {
  deployCommand,
  placeInstanceCommand,
  removeDeploymentCommand,
  retryDeploymentCommand,
} from '../../src/commands/deployment.ts';
import { assessLossesCommand, releaseLossesCommand } from '../../src/commands/loss.ts';
import {
  cancelDrainCommand,
  retireNodeCommand,
  revokeNodeCommand,
  startDrainCommand,
  takeOfflineCommand,
} from '../../src/commands/node-exit.ts';
import { sweepNodeCommand } from '../../src/commands/sweep.ts';
import { POOLS } from '../../src/domain/fields.ts';
import { workloadSamples } from '../support/workload-events.ts';
import { schedulerActs } from './scheduler.ts';
import type { World } from './world.ts';

/** One thing that happens; `n` decides whatever there is to choose. */
export interface Step {
  readonly what: (typeof STEPS)[number];
  readonly n: number;
}

/** What can happen. */
export const STEPS = [
  'deploy',
  'remove',
  'retry',
  'hush',
  'return',
  'time',
  'outage',
  'ask',
  'work',
  'succeed',
  'fail',
  'expire',
  'schedule',
  'crash',
  'deposed',
  'settle',
  'sweep',
  'lose',
  'release_losses',
  'drain',
  'migrate',
  'undrain',
  'decommission',
  'offline',
  'revoke',
  'add_node',
  'create_database',
] as const;

const UNHEALTHY_MS = 90_000;
const LOST_MS = 300_000;

type Act = (world: World, n: number) => Promise<unknown> | void;

const pick = <T>(list: readonly T[], n: number): T | undefined => list[n % Math.max(1, list.length)];

/** How each step is taken. What there is nothing for does nothing. */
const acts: Readonly<Record<Step['what'], Act>> = {
  deploy(world, n) {
    const [role] = workloadSamples.deployment_created.data.roles;
    if (role === undefined || world.deployments().filter(({ status }) => status !== 'removed').length > 3) return;
    const deployment_id = world.newId();
    const web = { ...role, count: 1 + (n % 3), cpu_millis: 100 + 100 * (n % 4), memory_mb: 100, disk_gb: 1 };
    const job = {
      ...role,
      role: 'seed',
      run: n % 2 ? ('release' as const) : ('job' as const),
      cpu_millis: 50,
      memory_mb: 50,
      disk_gb: 0,
      listens: false,
      serves_hostnames: false,
    };
    const members =
      n % 5 === 0
        ? world
            .nodes()
            .slice(0, 2)
            .map(({ node_id }) => node_id)
        : null;
    return world.give(deployCommand, {
      build: null,
      deployment: {
        ...workloadSamples.deployment_created.data,
        deployment_id,
        name: `d-${deployment_id.slice(0, 8)}`,
        hostnames: [`d-${deployment_id.slice(0, 8)}.example.com`],
        sealed_member_node_ids: members,
        roles: n % 3 === 0 ? [web, job] : [web],
      },
    });
  },
  remove(world, n) {
    const one = pick(world.deployments(), n);
    return one && world.give(removeDeploymentCommand, { deployment_id: one.deployment_id });
  },
  retry(world, n) {
    const one = pick(world.deployments(), n);
    return one && world.give(retryDeploymentCommand, { deployment_id: one.deployment_id });
  },
  hush(world, n) {
    const node = pick(world.nodes(), n);
    if (node !== undefined) world.silent.add(node.node_id);
  },
  async return(world, n) {
    const node_id = pick([...world.silent], n);
    if (node_id === undefined) return;
    world.silent.delete(node_id);
    await world.ask(node_id);
  },
  time: (world, n) => world.pass([1_000, 20_000, 70_000, 310_000][n % 4] ?? 0),
  outage: (world, n) => world.outage([70_000, 400_000, 90_000_000][n % 3] ?? 0),
  ask(world, n) {
    const node = pick(world.nodes(), n);
    return node && world.ask(node.node_id);
  },
  work,
  async succeed(world, n) {
    const held = pick(world.held.slice(-8), n);
    await (held && world.complete(held, true));
  },
  async fail(world, n) {
    const held = pick(world.held.slice(-8), n);
    await (held && world.complete(held, false));
  },
  async expire(world, n) {
    const held = pick(world.held.slice(-8), n);
    await (held && world.expire(held));
  },
  schedule,
  async crash(world, n) {
    let left = n % 12;
    for (const act of schedulerActs(world)) {
      if (left === 0) break;
      left -= 1;
      await act();
    }
    world.lead();
  },
  async deposed(world, n) {
    const node = pick(world.nodes(), n);
    const instance = pick(world.instances(), n);
    if (node !== undefined) await world.schedule(sweepNodeCommand, sweepOf(node.node_id), true);
    if (node === undefined || instance === undefined) return;
    await world.schedule(placeInstanceCommand, { instance_id: instance.instance_id, node_id: node.node_id }, true);
  },
  async settle(world) {
    for (let round = 0; round < 4; round += 1) {
      await schedule(world);
      await work(world);
    }
    await schedule(world);
  },
  sweep,
  /** Silence alone, for as long as it takes: what a sweep does not hold back is lost. */
  async lose(world, n) {
    const node = pick(world.nodes(), n);
    if (node === undefined) return;
    world.silent.add(node.node_id);
    world.pass(310_000);
    await sweep(world);
  },
  drain: (world, n) => onNode(world, n, (node_id) => world.give(startDrainCommand, plainDrain(node_id))),
  migrate: (world, n) =>
    onNode(world, n, (node_id) =>
      world.give(startDrainCommand, {
        node_id,
        migrate: true,
        max_in_flight: 1 + (n % 2),
        deadline_at: world.now + 60_000,
      }),
    ),
  undrain: (world, n) => onNode(world, n, (node_id) => world.give(cancelDrainCommand, { node_id })),
  decommission: (world, n) => onNode(world, n, (node_id) => world.give(retireNodeCommand, { node_id })),
  offline: (world, n) => onNode(world, n, (node_id) => world.give(takeOfflineCommand, { node_id })),
  revoke: (world, n) =>
    n % 4 === 0 ? onNode(world, n, (node_id) => world.give(revokeNodeCommand, { node_id })) : undefined,
  async add_node(world, n) {
    if (world.nodes().length < 8) await world.addNode(world.nodes().length, 'application', n % 2 === 0);
  },
  async create_database(world, n) {
    const node = pick(
      world.nodes().filter(({ status }) => status === 'active'),
      n,
    );
    if (node === undefined || world.databases().length > 2) return;
    await world.createDatabase(node.node_id);
  },
  async release_losses(world) {
    for (const pool of POOLS) await world.give(releaseLossesCommand, { pool, unhealthy_after_ms: UNHEALTHY_MS });
  },
};

async function schedule(world: World): Promise<void> {
  for (const act of schedulerActs(world)) await act();
}

/** Every agent does what there is for it. */
async function work(world: World): Promise<void> {
  for (const { node_id } of world.nodes()) {
    for (let i = 0; i < 4; i += 1) {
      const held = await world.ask(node_id);
      if (held === undefined) break;
      await world.complete(held, true);
    }
  }
}

async function sweep(world: World): Promise<void> {
  for (const pool of POOLS) await world.schedule(assessLossesCommand, { pool, unhealthy_after_ms: UNHEALTHY_MS });
  for (const { node_id } of world.nodes()) await world.schedule(sweepNodeCommand, sweepOf(node_id));
}

function onNode(world: World, n: number, act: (node_id: string) => Promise<unknown>): Promise<unknown> | undefined {
  const node = pick(world.nodes(), n);
  return node && act(node.node_id);
}

function plainDrain(node_id: string) {
  return { node_id, migrate: false, max_in_flight: null, deadline_at: null };
}

function sweepOf(node_id: string) {
  return { node_id, unhealthy_after_ms: UNHEALTHY_MS, lost_after_ms: LOST_MS };
}

/** Takes a step. */
export async function take(world: World, { what, n }: Step): Promise<void> {
  await acts[what](world, n);
}
