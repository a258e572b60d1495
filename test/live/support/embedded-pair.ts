import { readdir, readFile } from 'node:fs/promises';
import type { Pair } from './pair.ts';

const SERVER = `
  require('node:http')
    .createServer((_, response) => response.end(process.env.INSTANCE_ID))
    .listen(Number(process.env.PORT));`;

/** Leaders of the process groups of a host's workloads. */
export async function leaders(stateDir: string): Promise<number[]> {
  const folders = await readdir(`${stateDir}/instances`).catch(() => []);
  const records = await Promise.all(
    folders.map((folder) => readFile(`${stateDir}/instances/${folder}/record.json`, 'utf8').catch(() => undefined)),
  );
  return records.flatMap((text) => {
    const record = text === undefined ? undefined : (JSON.parse(text) as { leader: { pid: number } | null });
    return record?.leader == null ? [] : [record.leader.pid];
  });
}

/** Plain processes, and the ingress that is part of the agent. */
export function embeddedPair(): Promise<Pair> {
  return Promise.resolve({
    workerEnv: { PUSHLEFT_RUNTIME: 'process', PUSHLEFT_AGENT_ADVERTISE_ADDRESS: '127.0.0.1' },
    ingressEnv: (port) => ({
      PUSHLEFT_RUNTIME: 'process',
      PUSHLEFT_INGRESS: 'embedded',
      PUSHLEFT_INGRESS_BIND: `127.0.0.1:${port}`,
    }),
    ingressPort: undefined,
    web: { image: 'host', command: [process.execPath, '-e', SERVER.replaceAll(/\s+/g, ' ').trim()] },
    async hang({ stateDir }) {
      for (const pid of await leaders(stateDir)) process.kill(-pid, 'SIGSTOP');
    },
    isThere: async ({ stateDir }) => (await leaders(stateDir)).some(isAlive),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  });
}

/** Whether a process group has anybody in it. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(-pid, 0);
    return true;
  } catch {
    return false;
  }
}
