import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { areaOf, violations } from './import-arrows.ts';

const ROOT = join(import.meta.dirname, '../..');
const files = globSync('{src,projections,migrations,cli,agent,stubs,test,docs}/**/*.ts', { cwd: ROOT });

test('every file: imports only what its area may', () => {
  const found = files.flatMap((file) => violations(file, readFileSync(join(ROOT, file), 'utf8')));
  expect(found.map(({ file, line, to }) => `${file}:${line} imports ${to}`)).toEqual([]);
});

test('there are files to look at, in every area that exists', () => {
  expect(files.length).toBeGreaterThan(200);
  expect(new Set(files.map(areaOf))).toContain('src/domain');
});

describe('a planted import', () => {
  test.each([
    ['a static import', "import { gateway } from '../../gateway/listener.ts';"],
    ['a type', "import type { Gateway } from '../../gateway/listener.ts';"],
    ['a side effect', "import '../../gateway/listener.ts';"],
    ['a re-export', "export { gateway } from '../../gateway/listener.ts';"],
    ['a re-export of everything', "export * from '../../gateway/listener.ts';"],
    ['a dynamic import', "export const gateway = await import('../../gateway/listener.ts');"],
    ['a dynamic import in backticks', 'export const gateway = await import(`../../gateway/listener.ts`);'],
    ['a type by import()', "export type Gateway = import('../../gateway/listener.ts').Gateway;"],
    ['a detour', "import '../../../src/domain/../gateway/listener.ts';"],
  ])('%s: found, with its line', (_, statement) =>
    expect(violations('src/domain/node/admit.ts', `// Pure.\n${statement}\n`)).toEqual([
      { file: 'src/domain/node/admit.ts', line: 2, to: 'src/gateway' },
    ]),
  );

  test.each([
    ['src/domain/node/admit.ts', 'node:crypto'],
    ['src/domain/node/admit.ts', 'pg'],
    ['projections/jobs.ts', 'valibot'],
    ['src/protocol/lease.ts', '../transactor/command.ts', 'src/transactor'],
    ['projections/jobs.ts', '../src/log/codec.ts', 'src/log'],
    ['src/log/codec.ts', './postgres/reader.ts', 'src/log/postgres'],
    ['src/log/event-log.ts', '../../projections/registry.ts', 'projections'],
    ['src/transactor/batch.ts', '../gateway/listener.ts', 'src/gateway'],
    ['src/pki/csr.ts', '../log/chain.ts', 'src/log'],
    ['src/gateway/listener.ts', '../../cli/commands/up.ts', 'cli'],
    ['src/up/up.ts', '../../stubs/hetzner/stub.ts', 'stubs'],
    ['src/up/up.ts', '../../test/support/events.ts', 'test'],
    ['agent/run.ts', '../src/domain/fields.ts', 'src/domain'],
    ['agent/run.ts', '../src/pki/csr.ts', 'src/pki'],
    ['agent/run.ts', 'pg'],
    ['agent/enroll.ts', 'node-forge'],
    ['src/gateway/listener.ts', 'node-forge'],
    ['src/log/postgres/reader.ts', '@eventstore/db-client'],
    ['src/gateway/listener.ts', 'ky'],
    ['cli/commands/up.ts', 'hono/body-limit', 'hono'],
  ])('%s of %s: found', (file, specifier, to = specifier) =>
    expect(violations(file, `import '${specifier}';`)).toEqual([{ file, line: 1, to }]),
  );

  test.each([
    ['src/domain/node/admit.ts', '../decision.ts'],
    ['src/domain/node/events.ts', 'valibot'],
    ['agent/csr.ts', 'node-forge'],
    ['agent/run.ts', '../src/protocol/lease.ts'],
    ['src/pki/csr.ts', 'node-forge'],
    ['src/log/eventstoredb/append.ts', '@eventstore/db-client'],
    ['src/log/postgres/append.ts', '../chain.ts'],
    ['test/pki/csr.test.ts', 'node-forge'],
    ['test/e2e/up.test.ts', '../../cli/commands/up.ts'],
  ])('%s of %s: allowed', (file, specifier) => expect(violations(file, `import '${specifier}';`)).toEqual([]));

  test('the same words in a string or a comment: no import', () =>
    expect(
      violations('src/domain/a.ts', `// import '../gateway/b.ts'\nexport const text = "import '../gateway/b.ts'";`),
    ).toEqual([]));

  test('a folder that no line of the table names: refused', () =>
    expect(() => violations('src/novelty/a.ts', '')).toThrow('src/novelty/a.ts is in no area'));
});
