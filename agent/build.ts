import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Dependencies in CommonJS ask for Node's modules with `require`, which an ES module lacks. */
const BANNER = `#!/usr/bin/env node
import { createRequire as createRequireForBundle } from 'node:module';
const require = createRequireForBundle(import.meta.url);`;

const ENTRY = `import { main } from './agent/main.ts';
process.exitCode = await main(process.argv.slice(2), process.env);`;

/**
 * Bundles the agent into one file for Node 24, by default dist/pushleft-agent.mjs.
 * Answers what went in: a test shows that none of it is database code or the control plane's.
 */
export async function buildAgent(outfile = `${ROOT}dist/pushleft-agent.mjs`): Promise<Metafile> {
  const { version }: { version: string } = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8'));
  const { metafile } = await build({
    stdin: { contents: ENTRY, resolveDir: ROOT, sourcefile: 'pushleft-agent.ts', loader: 'ts' },
    absWorkingDir: ROOT,
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node24',
    format: 'esm',
    banner: { js: BANNER },
    define: { BUNDLED_AGENT_VERSION: JSON.stringify(version) },
    legalComments: 'none',
    metafile: true,
    logLevel: 'warning',
  });
  return metafile;
}

if (import.meta.main) await buildAgent();
