import { createSocket } from 'node:dgram';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type AgentConfig, hostOf } from '../config.ts';

/**
 * The address that workloads of this host are reached at: the configured one, else the one that the host's route to the gateway begins at, else
 * its first IPv4 address that is not a loopback, else 127.0.0.1.
 */
export async function advertiseAddress({
  advertiseAddress: configured,
  gatewayUrl,
}: Pick<AgentConfig, 'advertiseAddress' | 'gatewayUrl'>): Promise<string> {
  if (configured !== undefined) return configured;
  return routeSource(gatewayUrl).catch(() => firstExternalIpv4() ?? '127.0.0.1');
}

/** Connecting a UDP socket sends nothing; it asks the kernel which address packets to there would come from. */
async function routeSource(url: URL): Promise<string> {
  const { address } = await lookup(hostOf(url).host);
  const socket = createSocket(isIPv6(address) ? 'udp6' : 'udp4');
  try {
    socket.connect(Number(url.port) || 443, address);
    await once(socket, 'connect');
    return socket.address().address;
  } finally {
    socket.close();
  }
}

function firstExternalIpv4(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((interfaces) => interfaces ?? []);
  return addresses.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
}
