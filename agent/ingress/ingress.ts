import type { JobPayload } from '../../src/protocol/job-kinds/registry.ts';

/** A hostname that this host is to serve, and the instances that it leads to; none takes the hostname away. */
export type RouteOrder = JobPayload<'publish_ingress'>;

/** The header by which a request finds out that it was answered by an instance, by which generation of the route. */
export const GENERATION_HEADER = 'x-pushleft-generation';

/** Where the ingress listens. */
export interface IngressBind {
  readonly host: string;
  readonly port: number;
}

/** What serves hostnames on this host. Routes are kept by {@link RouteTable}; an ingress only puts them in force. */
export interface Ingress {
  /** Puts these routes in force, and no others. Throws what keeps it from that. */
  apply(routes: readonly RouteOrder[], signal: AbortSignal): Promise<void>;
  /** Ends what it has opened itself. */
  close(): Promise<void>;
}
