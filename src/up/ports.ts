import { createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';

/**
 * Answers the preferred port where nothing listens on it at loopback, or else a free one; 0 prefers none. `taken` are ports that were
 * chosen before and are not listened on yet. Another program may still come first: who listens must report it.
 */
export async function choosePort(preferred: number, taken: ReadonlySet<number> = new Set()): Promise<number> {
  if (preferred !== 0 && !taken.has(preferred) && (await bindOnce(preferred)) !== undefined) return preferred;
  for (;;) {
    const port = await bindOnce(0);
    if (port === undefined) throw new Error(`no free port at ${LOOPBACK}`);
    if (!taken.has(port)) return port;
  }
}

/** Chooses a port for each name, all different. */
export async function choosePorts<Name extends string>(
  preferred: Readonly<Record<Name, number>>,
): Promise<Record<Name, number>> {
  const chosen: Record<string, number> = {};
  for (const [name, port] of Object.entries<number>(preferred)) {
    chosen[name] = await choosePort(port, new Set(Object.values(chosen)));
  }
  return chosen;
}

/** Undefined when the port is in use, or is one that this user may not have. */
function bindOnce(port: number): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const server = createServer();
  server.once('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EADDRINUSE' || error.code === 'EACCES') resolve(undefined);
    else reject(error);
  });
  server.listen({ host: LOOPBACK, port, exclusive: true }, () => {
    const address = server.address();
    const bound = typeof address === 'object' && address !== null ? address.port : undefined;
    server.close(() => resolve(bound));
  });
  return promise;
}
