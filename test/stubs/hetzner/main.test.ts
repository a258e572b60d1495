import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { identifyProcess } from '../../../src/up/process-identity.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { waitFor } from '../../support/wait-for.ts';
import { SERVER } from './support.ts';

const MAIN = new URL('../../../stubs/hetzner/main.ts', import.meta.url).pathname;

function start(args: string[], env: Record<string, string> = {}): ChildProcessByStdio<null, Readable, Readable> {
  const options = { env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] as ['ignore', 'pipe', 'pipe'] };
  const child = spawn(process.execPath, [MAIN, ...args], options);
  onTestFinished(() => void child.kill('SIGTERM'));
  return child;
}

async function urlOf(child: ChildProcessByStdio<null, Readable, Readable>): Promise<string> {
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return /^Hetzner Cloud API stub on (http:\/\/127\.0\.0\.1:\d+\/v1)\n$/.exec(line)?.[1] ?? `unexpected: ${line}`;
}

async function refusal(args: string[]): Promise<{ code: unknown; stderr: string }> {
  const child = start(args);
  const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
  return { code, stderr };
}

test('token of the environment: the only one let in; SIGTERM: exit 0', async () => {
  const child = start(['--port', '0'], { HETZNER_STUB_TOKEN: 'right' });
  const url = await urlOf(child);
  const ask = (token: string) => fetch(`${url}/servers`, { headers: { authorization: `Bearer ${token}` } });
  expect([(await ask('right')).status, (await ask('wrong')).status]).toEqual([200, 401]);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

test('killed with -9 and started again on its state: the server and its machine are still there', async () => {
  await using folder = await temporaryDirectory();
  const args = ['--port', '0', '--state', join(folder.path, 'state.json'), '--action-ms', '10'];
  const machine = ['--boot-command', 'echo $$ >> booted; exec sleep 600', '--boot-dir', join(folder.path, 'machines')];
  const first = start([...args, ...machine]);
  const headers = { authorization: 'Bearer x' };
  await fetch(`${await urlOf(first)}/servers`, { method: 'POST', headers, body: JSON.stringify(SERVER) });
  const boots = () => readFile(join(folder.path, 'machines/2/booted'), 'utf8');
  const pids = await waitFor(boots, { what: 'the server has booted' });
  first.kill('SIGKILL');
  await once(first, 'exit');

  const second = start([...args, ...machine]);
  const url = await urlOf(second);
  expect(await (await fetch(`${url}/servers/2`, { headers })).json()).toMatchObject({ server: { status: 'running' } });
  expect(await boots()).toBe(pids);
  second.kill('SIGTERM');
  expect(await once(second, 'exit')).toEqual([0, null]);
  expect(identifyProcess(Number(pids))).toBeUndefined();
});

test('port in use: one line, exit 2', async () => {
  const squatter = createServer().listen(0, '127.0.0.1');
  await once(squatter, 'listening');
  const address = squatter.address();
  const port = typeof address === 'object' ? String(address?.port) : '';
  expect(await refusal(['--port', port])).toEqual({
    code: 2,
    stderr: `hetzner stub: port ${port} is in use: choose another with --port\n`,
  });
  squatter.close();
});

test.each([
  ['--port', 'http', '--port is a whole number up to 65535'],
  ['--faults', '/nonexistent', 'no such file'],
  ['--colour', 'red', "Unknown option '--colour'"],
])('%s %s: exit 2', async (flag, value, message) => {
  const { code, stderr } = await refusal([flag, value]);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});

test('fault plan that is not valid: exit 2', async () => {
  await using folder = await temporaryDirectory();
  const file = join(folder.path, 'faults.json');
  await writeFile(file, '[{"match": {"path": "/v1/servers"}, "fault": {"kind": "explode"}}]');
  expect(await refusal(['--faults', file])).toMatchObject({ code: 2 });
});
