import type { Command } from '@oclif/core';

type CommandModule = { readonly default: Command.Class };
type Loader = readonly [id: string, load: () => Promise<unknown>];

/** Every command by its id; adding one is one file and one line here. Each is loaded only when it is needed. */
const loaders: Readonly<Record<string, () => Promise<unknown>>> = {
  'db:migrate': () => import('./commands/db/migrate.ts'),
  'db:roles': () => import('./commands/db/roles.ts'),
  'db:shell': () => import('./commands/db/shell.ts'),
  'fleet:admit': () => import('./commands/fleet/admit.ts'),
  'fleet:ca:audit': () => import('./commands/fleet/ca/audit.ts'),
  'fleet:ca:init': () => import('./commands/fleet/ca/init.ts'),
  'fleet:ca:reissue-gateway': () => import('./commands/fleet/ca/reissue-gateway.ts'),
  'fleet:ca:rotate': () => import('./commands/fleet/ca/rotate.ts'),
  'fleet:ca:status': () => import('./commands/fleet/ca/status.ts'),
  'fleet:ca:sync': () => import('./commands/fleet/ca/sync.ts'),
  'fleet:certificates:list': () => import('./commands/fleet/certificates/list.ts'),
  'fleet:certificates:revoke': () => import('./commands/fleet/certificates/revoke.ts'),
  'fleet:decommission': () => import('./commands/fleet/decommission.ts'),
  'fleet:drain': () => import('./commands/fleet/drain.ts'),
  'fleet:mesh-coordinator': () => import('./commands/fleet/mesh-coordinator.ts'),
  'fleet:offline': () => import('./commands/fleet/offline.ts'),
  'fleet:revoke': () => import('./commands/fleet/revoke.ts'),
  'fleet:undrain': () => import('./commands/fleet/undrain.ts'),
  'fleet:doctor': () => import('./commands/fleet/doctor.ts'),
  'fleet:events': () => import('./commands/fleet/events.ts'),
  'fleet:list': () => import('./commands/fleet/list.ts'),
  'fleet:provision': () => import('./commands/fleet/provision.ts'),
  'fleet:reenroll': () => import('./commands/fleet/reenroll.ts'),
  'fleet:loss:freeze': () => import('./commands/fleet/loss/freeze.ts'),
  'fleet:loss:release': () => import('./commands/fleet/loss/release.ts'),
  'fleet:loss:status': () => import('./commands/fleet/loss/status.ts'),
  'fleet:loss:thaw': () => import('./commands/fleet/loss/thaw.ts'),
  'fleet:reclaim:show': () => import('./commands/fleet/reclaim/show.ts'),
  'fleet:show': () => import('./commands/fleet/show.ts'),
  'fleet:sweep': () => import('./commands/fleet/sweep.ts'),
  'fleet:why': () => import('./commands/fleet/why.ts'),
  gateway: () => import('./commands/gateway.ts'),
  'job:list': () => import('./commands/job/list.ts'),
  'job:queue': () => import('./commands/job/queue.ts'),
  'job:show': () => import('./commands/job/show.ts'),
  'log:checkpoint': () => import('./commands/log/checkpoint.ts'),
  'log:export': () => import('./commands/log/export.ts'),
  'log:show': () => import('./commands/log/show.ts'),
  'log:verify': () => import('./commands/log/verify.ts'),
  'projections:rebuild': () => import('./commands/projections/rebuild.ts'),
  'projections:status': () => import('./commands/projections/status.ts'),
  'projections:verify': () => import('./commands/projections/verify.ts'),
  scheduler: () => import('./commands/scheduler.ts'),
  'workload:database:create': () => import('./commands/workload/database/create.ts'),
  'workload:database:list': () => import('./commands/workload/database/list.ts'),
  'workload:database:release': () => import('./commands/workload/database/release.ts'),
  'workload:deploy': () => import('./commands/workload/deploy.ts'),
  'workload:list': () => import('./commands/workload/list.ts'),
  'workload:remove': () => import('./commands/workload/remove.ts'),
  'workload:retry': () => import('./commands/workload/retry.ts'),
  'workload:show': () => import('./commands/workload/show.ts'),
  up: () => import('./commands/up.ts'),
};

/**
 * What oclif reads (package.json, `oclif.commands`). It wants the classes of all commands; the one that the arguments name is enough to
 * run it, and loading the others would take most of a command's time. Help, completion and misspelt names get all of them.
 */
export const commands: Record<string, Command.Class> = await load(named(process.argv.slice(2)));

function named(argv: readonly string[]): readonly Loader[] {
  const all = Object.entries(loaders);
  if (argv.includes('--help')) return all;
  for (const words of [3, 2, 1]) {
    const id = argv.slice(0, words).join(':');
    const found = all.filter(([name]) => name === id);
    if (found.length > 0) return found;
  }
  return all;
}

async function load(chosen: readonly Loader[]): Promise<Record<string, Command.Class>> {
  const loaded = await Promise.all(
    chosen.map(async ([id, loader]) => [id, ((await loader()) as CommandModule).default] as const),
  );
  return Object.fromEntries(loaded);
}
