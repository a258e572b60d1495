import type { Server } from 'node:https';
import type { Socket } from 'node:net';
import { addressKey } from './address-key.ts';

/** How many connections a listener holds: of one address (IPv4) or one /64 (IPv6), and of everybody. */
export interface ConnectionLimits {
  readonly perAddress: number;
  readonly total: number;
}

/**
 * Closes connections beyond their address's share as soon as they are accepted, before TLS costs anything, so that one address cannot
 * take the places of all others. Holds a number for each address that is connected, no more. What is within the share and says
 * nothing is ended by the listener's deadlines for handshake and headers.
 */
export function limitConnections(server: Server, { perAddress, total }: ConnectionLimits): void {
  const connected = new Map<string, number>();
  const accepting = server.listeners('connection');
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const key = addressKey(socket.remoteAddress ?? '');
    const count = connected.get(key) ?? 0;
    if (count >= perAddress) {
      socket.destroy();
      return;
    }
    connected.set(key, count + 1);
    socket.once('close', () => {
      const left = (connected.get(key) ?? 1) - 1;
      if (left === 0) connected.delete(key);
      else connected.set(key, left);
    });
    for (const accept of accepting) accept.call(server, socket);
  });
  server.maxConnections = total;
}
