import { ApiError } from './errors.ts';
import type { Server } from './state.ts';

/** The three networks that RFC 5737 sets aside for documentation: nothing answers there. */
const IPV4_NETWORKS = ['192.0.2', '198.51.100', '203.0.113'];
const HOSTS_PER_NETWORK = 254;

/** The lowest free IPv4 address of the documentation networks. Throws 403 `resource_limit_exceeded` when all are taken. */
export function allocateIpv4(servers: readonly Server[]): string {
  const taken = new Set(servers.map(({ ipv4 }) => ipv4));
  for (const network of IPV4_NETWORKS) {
    for (let host = 1; host <= HOSTS_PER_NETWORK; host += 1) {
      const address = `${network}.${host}`;
      if (!taken.has(address)) return address;
    }
  }
  throw new ApiError(403, 'resource_limit_exceeded', 'primary IP limit exceeded', {
    limits: [{ name: 'primary_ip_limit' }],
  });
}

/** The lowest free /64 of 2001:db8::/48 (RFC 3849). */
export function allocateIpv6(servers: readonly Server[]): string {
  const taken = new Set(servers.map(({ ipv6 }) => ipv6));
  for (let subnet = 1; ; subnet += 1) {
    const network = `2001:db8:0:${subnet.toString(16)}::/64`;
    if (!taken.has(network)) return network;
  }
}
