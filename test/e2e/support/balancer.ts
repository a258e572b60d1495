import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP load balancer: knows ports, not TLS, and hands each new connection to the next one. */
export interface Balancer extends AsyncDisposable {
  readonly port: number;
  /** Connections so far. */
  readonly connections: () => number;
  /** Whatever went wrong on the way to a backend, in words. A connection that either end closes in order is no error. */
  readonly errors: readonly string[];
}

/** Starts a balancer on loopback in front of these ports. */
export async function startBalancer(backends: readonly number[]): Promise<Balancer> {
  const errors: string[] = [];
  const open = new Set<Socket>();
  let connections = 0;
  const server = createServer((client) => {
    const port = backends[connections % backends.length] ?? 0;
    connections += 1;
    const backend = connect(port, '127.0.0.1');
    for (const [socket, other, name] of [
      [client, backend, 'client'],
      [backend, client, 'backend'],
    ] as const) {
      open.add(socket);
      socket.on('error', (error) => errors.push(`${name} of ${port}: ${error.message}`));
      socket.on('close', () => {
        open.delete(socket);
        other.destroy();
      });
    }
    client.pipe(backend);
    backend.pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    connections: () => connections,
    errors,
    async [Symbol.asyncDispose]() {
      server.close();
      for (const socket of open) socket.destroy();
      await once(server, 'close');
    },
  };
}
