/**
 * Where a route is. `publishing` has a job on its ingress host; `active` serves; `draining` was replaced by one on another host;
 * `failed` and `removed` are over.
 */
export type RouteStatus = 'publishing' | 'active' | 'draining' | 'failed' | 'removed';

/** One generation of a hostname's route: the row of `ingress_routes`. */
export interface RouteState {
  readonly route_id: string;
  readonly hostname: string;
  readonly generation: number;
  readonly deployment_id: string;
  readonly node_id: string;
  readonly job_id: string | null;
  readonly instance_ids: readonly string[];
  readonly relocation: boolean;
  readonly status: RouteStatus;
  /** How many relocations of the hostname have failed since one was active. */
  readonly failures: number;
  readonly failure_reason: string | null;
  readonly published_at: number;
  readonly activated_at: number | null;
  readonly failed_at: number | null;
  readonly ended_at: number | null;
}

/** The key of a route. */
export function routeId({ hostname, generation }: { hostname: string; generation: number }): string {
  return `${hostname}/${generation}`;
}
