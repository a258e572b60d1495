import { posix } from 'node:path';
import { parseSync, Visitor } from 'vite';

/** An import that the rule forbids. `to` is an area of the repository or a package; `line` counts from 1. */
export interface Violation {
  readonly file: string;
  readonly line: number;
  readonly to: string;
}

const everything = 'everything' as const;

/**
 * Which area may import which others, besides itself: docs/architecture.md in a form that a machine checks. An area is the longest
 * prefix of a file's path that is listed. Nothing imports `cli`, `stubs` or `test`.
 */
const ARROWS: Readonly<Record<string, readonly string[] | typeof everything>> = {
  'src/domain': [],
  'src/protocol': ['src/domain'],
  'src/pki': ['src/domain'],
  'src/hetzner': ['src/domain'],
  projections: ['src/domain'],
  'src/tables': ['projections'],
  'src/log': ['src/domain'],
  'src/log/postgres': ['src/domain', 'src/log', 'src/database'],
  'src/log/eventstoredb': ['src/domain', 'src/log'],
  'src/database': ['src/domain', 'src/log/postgres'],
  'src/transactor': [
    'src/domain',
    'projections',
    'src/tables',
    'src/log',
    'src/log/postgres',
    'src/database',
    'src/projector',
  ],
  'src/projector': ['src/domain', 'projections', 'src/tables', 'src/log', 'src/log/postgres', 'src/database'],
  'src/commands': ['src/domain', 'src/protocol', 'src/transactor'],
  'src/audit': ['src/domain', 'src/log', 'src/log/postgres', 'src/transactor', 'src/commands', 'src/pki'],
  'src/read': [
    'src/domain',
    'projections',
    'src/log',
    'src/log/postgres',
    'src/database',
    'src/projector',
    'src/transactor',
  ],
  'src/provisioning': [
    'src/domain',
    'src/commands',
    'src/database',
    'src/hetzner',
    'src/pki',
    'src/protocol',
    'src/read',
    'src/transactor',
  ],
  'src/gateway': [
    'src/domain',
    'projections',
    'src/tables',
    'src/log',
    'src/log/postgres',
    'src/database',
    'src/transactor',
    'src/commands',
    'src/pki',
    'src/protocol',
  ],
  'src/workload': ['src/domain'],
  'src/scheduler': ['src/domain', 'src/log', 'src/audit', 'src/commands', 'src/database', 'src/transactor', 'src/read'],
  'src/up': [
    'src/domain',
    'migrations',
    'src/commands',
    'src/database',
    'src/pki',
    'src/protocol',
    'src/provisioning',
    'src/read',
    'src/rotation',
    'src/transactor',
  ],
  'src/rotation': ['src/domain', 'src/commands', 'src/pki', 'src/read', 'src/transactor'],
  migrations: ['src/database', 'src/projector'],
  agent: ['src/protocol'],
  stubs: ['src/hetzner', 'src/pki', 'src/protocol', 'src/up'],
  cli: [
    'migrations',
    'projections',
    'src/audit',
    'src/commands',
    'src/database',
    'src/domain',
    'src/gateway',
    'src/hetzner',
    'src/log',
    'src/log/postgres',
    'src/pki',
    'src/projector',
    'src/protocol',
    'src/provisioning',
    'src/read',
    'src/rotation',
    'src/scheduler',
    'src/transactor',
    'src/up',
    'src/workload',
  ],
  docs: ['src/database', 'src/domain'],
  test: everything,
};

/** All that these areas may import from outside the repository; Node's own modules too. */
const ONLY_PACKAGES: Readonly<Record<string, readonly string[]>> = {
  'src/domain': ['valibot'],
  'src/protocol': ['valibot'],
  projections: [],
};

/** Packages that have one home. Tests may use them all. */
const HOMES: Readonly<Record<string, readonly string[]>> = {
  '@eventstore/db-client': ['src/log/eventstoredb'],
  '@hono/node-server': ['src/gateway', 'stubs'],
  '@oclif/core': ['cli'],
  httpxy: ['agent/ingress'],
  hono: ['src/gateway', 'stubs'],
  ky: ['src/hetzner'],
  kysely: ['migrations', 'src/read'],
  'node-forge': ['src/pki', 'agent/csr.ts'],
  pg: ['cli', 'src'],
  'pg-copy-streams': ['src/projector'],
};

/** Every import of `source` that the rule forbids. `file` is its path in the repository. */
export function violations(file: string, source: string): Violation[] {
  const from = areaOf(file);
  return importsOf(file, source)
    .map(({ specifier, line }) => ({ file, line, to: resolve(file, specifier) }))
    .filter(({ to }) => !(isPath(to) ? mayImport(from, areaOf(to)) : mayUse(file, from, to)))
    .map(({ to, ...where }) => ({ ...where, to: isPath(to) ? areaOf(to) : to }));
}

/** The area that a path belongs to. Throws for a path that belongs to none: give it a line in {@link ARROWS}. */
export function areaOf(path: string): string {
  const areas = Object.keys(ARROWS).filter((area) => path.startsWith(`${area}/`));
  const [longest] = areas.toSorted((a, b) => b.length - a.length);
  if (longest === undefined) throw new Error(`${path} is in no area of test/rules/import-arrows.ts`);
  return longest;
}

function mayImport(from: string, to: string): boolean {
  const allowed = ARROWS[from] ?? [];
  return from === to || allowed === everything || allowed.includes(to);
}

function mayUse(file: string, area: string, name: string): boolean {
  if (area === 'test') return true;
  const only = ONLY_PACKAGES[area];
  if (only !== undefined) return only.includes(name);
  const homes = HOMES[name];
  return homes === undefined || homes.some((home) => file === home || file.startsWith(`${home}/`));
}

/** Whether an import leads into an area; else it is a package, a module of Node's or a file at the root. */
const isPath = (to: string) => to.includes('/') && Object.keys(ARROWS).some((area) => to.startsWith(`${area}/`));

function resolve(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(file), specifier);
  const [scopeOrName = '', name] = specifier.split('/');
  return scopeOrName.startsWith('@') ? `${scopeOrName}/${name}` : scopeOrName;
}

function importsOf(file: string, source: string): { specifier: string; line: number }[] {
  const parsed = parseSync(file, source);
  const { module, errors } = parsed;
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`);
  const found = [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest),
    ...module.staticExports.flatMap(({ entries }) => entries.flatMap(({ moduleRequest }) => moduleRequest ?? [])),
    ...module.dynamicImports.map(({ moduleRequest }) => moduleRequest),
  ];
  // Types by import() are in the syntax tree alone, which is costly to read.
  if (/\bimport\(/.test(source))
    new Visitor({ TSImportType: (type) => void found.push(type.source) }).visit(parsed.program);
  return found.flatMap(({ start, end }) => {
    const literal = /^(['"`])([^'"`$]+)\1$/.exec(source.slice(start, end))?.[2];
    return literal === undefined ? [] : [{ specifier: literal, line: source.slice(0, start).split('\n').length }];
  });
}
