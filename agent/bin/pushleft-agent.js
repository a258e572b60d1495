#!/usr/bin/env node
// Starts the agent from its sources. They need Node 24; an older Node hands over to the one that npm installed.
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const OLDEST_MAJOR = 24;

if (Number(process.versions.node.split('.')[0]) >= OLDEST_MAJOR) {
  const { main } = await import('../main.ts');
  process.exitCode = await main(process.argv.slice(2), process.env);
} else {
  const node = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
  const self = fileURLToPath(import.meta.url);
  const child = spawn(node, [self, ...process.argv.slice(2)], { stdio: 'inherit' });
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal));
  child.on('error', (error) => {
    process.stderr.write(`pushleft-agent: Node ${OLDEST_MAJOR} is needed and ${node} does not start: ${error.code}\n`);
    process.exitCode = 3;
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
