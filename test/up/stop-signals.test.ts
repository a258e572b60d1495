import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { expect, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';

test('Ctrl-C once: asked to stop, still there; twice: forced', async () => {
  const { child, said } = await listening();
  child.kill('SIGINT');
  await said('stopping for SIGINT\n');
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([99, null]);
  expect(await said('forced by SIGINT\n')).toBe('listening\nstopping for SIGINT\nforced by SIGINT\n');
});

test.each(['SIGTERM', 'SIGHUP'] as const)('%s: asks to stop as Ctrl-C does', async (signal) => {
  const { child, said } = await listening();
  child.kill(signal);
  await said(`stopping for ${signal}\n`);
  child.kill('SIGKILL');
});

test('released: Ctrl-C ends the process as if nobody had listened', async () => {
  const { child, said } = await listening('release');
  child.kill('SIGTERM');
  await said('released\n');
  child.kill('SIGINT');
  expect(await once(child, 'exit')).toEqual([null, 'SIGINT']);
});

async function listening(...args: string[]) {
  const script = join(import.meta.dirname, 'fixtures/stop-signals.ts');
  const child: ChildProcessByStdio<null, Readable, null> = spawn(process.execPath, [script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const said = (line: string) => waitFor(() => output.includes(line) && output, { what: `it says ${line.trim()}` });
  await said('listening\n');
  return { child, said };
}
