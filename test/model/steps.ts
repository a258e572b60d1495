import { deployCommand, removeDeploymentCommand, retryDeploymentCommand } from '../../src/commands/deployment.ts';
import { loseCommand } from '../support/lose.ts';
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
  'hear',
  'time',
  'lease',
  'succeed',
  'fail',
  'expire',
  'schedule',
  'schedule_cut',
  'lose',
] as const;

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
  hear(world) {
    for (const { node_id, status } of world.nodes()) if (status !== 'retired') world.hear(node_id);
  },
  time: (world, n) => world.pass([1_000, 20_000, 70_000, 310_000][n % 4] ?? 0),
  lease(world, n) {
    const node = pick(world.nodes(), n);
    return node && world.lease(node.node_id);
  },
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
  async schedule(world) {
    for (const act of schedulerActs(world)) await act();
  },
  async schedule_cut(world, n) {
    let left = n % 12;
    for (const act of schedulerActs(world)) {
      if (left === 0) return;
      left -= 1;
      await act();
    }
  },
  lose(world, n) {
    const node = pick(world.nodes(), n);
    const losable = node !== undefined && ['active', 'unhealthy', 'draining'].includes(node.status);
    return losable ? world.give(loseCommand, { node_id: node.node_id }) : undefined;
  },
};

/** Takes a step. */
export async function take(world: World, { what, n }: Step): Promise<void> {
  await acts[what](world, n);
}
