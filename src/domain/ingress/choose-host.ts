import type { DeploymentState } from '../deployment/state.ts';
import type { Pool } from '../fields.ts';

/** A node that serves hostnames and takes work, and how many it serves. It is changed as hostnames are given to it. */
export interface IngressHost {
  readonly node_id: string;
  readonly pool: Pool;
  readonly region: string;
  hostnames: number;
}

/**
 * The ingress host for a deployment's hostname: the one that serves it already, if it may still be chosen; otherwise the one with the
 * fewest hostnames, then by id. Undefined when there is none.
 */
export function chooseIngressHost(
  { pool, regions }: DeploymentState,
  servingNodeId: string | undefined,
  hosts: readonly IngressHost[],
): IngressHost | undefined {
  const eligible = hosts.filter((host) => host.pool === pool && regions.includes(host.region));
  const serving = eligible.find(({ node_id }) => node_id === servingNodeId);
  if (serving !== undefined) return serving;
  return eligible.reduce<IngressHost | undefined>(
    (best, host) => (best === undefined || host.hostnames < best.hostnames ? host : best),
    undefined,
  );
}
