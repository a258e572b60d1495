import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** The address under which agents reach a gateway: a relay that can be taken away while the gateway itself is well. */
export interface Entrance extends AsyncDisposable {
  readonly port: number;
  /** Where it leads from now on. */
  leadTo(gatewayUrl: string): void;
  /** Breaks every connection off and takes none any more. */
  close(): Promise<void>;
  /** Takes connections again, on the same port. */
  open(): Promise<void>;
}

/** Opens an entrance on a free port of loopback, which leads nowhere yet. */
export async function openEntrance(): Promise<Entrance> {
  const sockets = new Set<Socket>();
  let port = 0;
  let gatewayPort = 0;
  let server: Server | undefined;
  const relay = (near: Socket) => {
    const far = connect(gatewayPort, '127.0.0.1');
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  };
  const entrance = {
    get port() {
      return port;
    },
    leadTo(gatewayUrl: string) {
      gatewayPort = Number(new URL(gatewayUrl).port);
    },
    async close() {
      const closed = server === undefined ? undefined : once(server, 'close');
      server?.close();
      for (const socket of sockets) socket.destroy();
      await closed;
      server = undefined;
    },
    async open() {
      server = createServer(relay).listen(port, '127.0.0.1');
      await once(server, 'listening');
      ({ port } = server.address() as AddressInfo);
    },
    [Symbol.asyncDispose]: () => entrance.close(),
  };
  await entrance.open();
  return entrance;
}
