import type { Command } from '@oclif/core';

type CommandModule = { readonly default: Command.Class };

/** Every command by its id; adding one is one file and one line here. Each is loaded only when it is needed. */
const loaders: Readonly<Record<string, () => Promise<unknown>>> = {
  'fleet:admit': () => import('./commands/fleet/admit.ts'),
  'fleet:events': () => import('./commands/fleet/events.ts'),
  'fleet:list': () => import('./commands/fleet/list.ts'),
  'fleet:show': () => import('./commands/fleet/show.ts'),
  'job:list': () => import('./commands/job/list.ts'),
  'job:queue': () => import('./commands/job/queue.ts'),
  'job:show': () => import('./commands/job/show.ts'),
};

/**
 * What oclif reads (package.json, `oclif.commands`). It wants the classes of all commands; the one that the arguments name is enough to
 * run it, and loading the others would take most of a command's time. Help, completion and misspelt names get all of them.
 */
export const commands: Record<string, Command.Class> = await load(named(process.argv.slice(2)));

function named(argv: readonly string[]): readonly string[] {
  if (argv.includes('--help')) return Object.keys(loaders);
  for (const words of [3, 2, 1]) {
    const id = argv.slice(0, words).join(':');
    if (Object.hasOwn(loaders, id)) return [id];
  }
  return Object.keys(loaders);
}

async function load(ids: readonly string[]): Promise<Record<string, Command.Class>> {
  const modules = await Promise.all(
    ids.map(async (id) => [id, ((await loaders[id]?.()) as CommandModule).default] as const),
  );
  return Object.fromEntries(modules);
}
