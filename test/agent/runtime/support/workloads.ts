import { readFile } from 'node:fs/promises';
import type { WorkloadSpec } from '../../../../agent/runtime/runtime.ts';
import { waitFor } from '../../../support/wait-for.ts';

/** The node that every test's runtime belongs to. */
export const NODE_ID = '10000000-0000-4000-8000-00000000000a';
const DEPLOYMENT_ID = '50000000-0000-4000-8000-00000000000d';

/** Id of an instance of the web role. */
export const instanceId = (generation = 1, slot = 0) => `${DEPLOYMENT_ID}.web.${slot}.${generation}`;

/** A service that serves HTTP on PORT: 200 at /ready, 500 at /broken, what it was given in its environment elsewhere. */
export const SERVER = `
require('node:http').createServer((request, response) => {
  const status = request.url === '/broken' ? 500 : 200;
  response.writeHead(status).end(JSON.stringify({ env: process.env, cwd: process.cwd(), pid: process.pid }));
}).listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listening'));
`;

/** The words that run a script with this Node, which takes lines for statements no more: a command's words are printable. */
export const node = (script: string, ...words: readonly string[]) => [
  process.execPath,
  '-e',
  script.trim().replaceAll(/\s*\n\s*/g, ' '),
  '--',
  ...words,
];

/** A service of generation 1 of the web role's slot 0 that runs `command`. */
export function workload(command: readonly string[], more: Partial<WorkloadSpec> = {}): WorkloadSpec {
  const generation = more.generation ?? 1;
  return {
    id: instanceId(generation),
    deploymentId: DEPLOYMENT_ID,
    generation,
    epoch: 1,
    run: 'service',
    image: 'example/web:1',
    command,
    cpuMillis: 100,
    memoryMb: 64,
    listens: true,
    keepsData: false,
    ...more,
  };
}

/** What a file holds once there is something in it. */
export async function eventually(path: string): Promise<string> {
  let text = '';
  await waitFor(async () => (text = await readFile(path, 'utf8').catch(() => '')) !== '', { what: path });
  return text;
}

/** Whether a process runs under this pid. */
export async function isAlive(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined);
  return stat !== undefined && !/^[ZX]/.test(stat.slice(stat.lastIndexOf(')') + 2));
}
