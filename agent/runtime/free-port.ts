import { createServer } from 'node:net';
import { hasCode } from '../state-fs.ts';

const ATTEMPTS_MAX = 100;

/**
 * A TCP port of the address that nothing listens on and that is none of `taken` (promised to workloads that do not listen yet). `preferred`,
 * the one it had before, is kept while it is free. Nothing reserves it: a stranger may still be faster than the workload,
 * which then does not become ready.
 */
export async function findFreePort(address: string, taken: ReadonlySet<number>, preferred?: number): Promise<number> {
  if (preferred !== undefined && (await isFreePort(address, preferred))) return preferred;
  for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
    const port = await tryPort(address, 0);
    if (port !== undefined && !taken.has(port)) return port;
  }
  throw new Error(`no free TCP port on ${address}`);
}

/** Whether nothing listens on this port. */
export async function isFreePort(address: string, port: number): Promise<boolean> {
  return (await tryPort(address, port)) !== undefined;
}

/** Binds and lets go; undefined when the port is in use. */
async function tryPort(address: string, port: number): Promise<number | undefined> {
  const server = createServer();
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, address, resolve);
    });
    const bound = server.address();
    return typeof bound === 'object' ? bound?.port : undefined;
  } catch (error) {
    if (hasCode(error, 'EADDRINUSE') || hasCode(error, 'EACCES')) return undefined;
    throw error;
  } finally {
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  }
}
