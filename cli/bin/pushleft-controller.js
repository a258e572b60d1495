#!/usr/bin/env node
// Starts the CLI, from its bundle (cli/build.ts) where there is a fresh one, else from its sources.
// They need Node 24; an older Node hands over to the one that npm installed.
import { spawn } from 'node:child_process';
import { readFileSync, realpathSync, statSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const OLDEST_MAJOR = 24;
const root = realpathSync(fileURLToPath(new URL('../../', import.meta.url)));

if (Number(process.versions.node.split('.')[0]) >= OLDEST_MAJOR) {
  // Keeps compiled modules, types stripped, between starts: half of a short command's time.
  module.enableCompileCache();
  const bundled = bundleIsFresh();
  const { main } = await import(bundled ? '../../dist/cli/main.mjs' : '../main.ts');
  await main(root, bundled ? './dist/cli/registry.mjs' : './cli/registry.ts');
} else {
  const node = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
  const child = spawn(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' });
  // A terminal sends its Ctrl-C and hang-up to the child as well, and two of them mean "at once".
  const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  for (const signal of ['SIGINT', 'SIGHUP', 'SIGTERM']) {
    process.on(signal, () => (terminal && signal !== 'SIGTERM' ? undefined : child.kill(signal)));
  }
  child.on('error', (error) => {
    process.stderr.write(
      `pushleft-controller: Node ${OLDEST_MAJOR} is needed, this is ${process.version}, and ${node} does not start (${error.code}): run npm ci, or install Node ${OLDEST_MAJOR}\n`,
    );
    process.exitCode = 2;
  });
  child.on('exit', (code, signal) => {
    if (signal === null) {
      process.exitCode = code ?? 3;
      return;
    }
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  });
}

/** Whether there is a bundle and none of the sources that went into it has changed since. */
function bundleIsFresh() {
  try {
    const list = `${root}/dist/cli/inputs.json`;
    const builtAt = statSync(list).mtimeMs;
    return JSON.parse(readFileSync(list, 'utf8')).every((path) => statSync(`${root}/${path}`).mtimeMs < builtAt);
  } catch {
    return false;
  }
}
