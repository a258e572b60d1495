import type pg from 'pg';
import { type Candidate, roleKey } from '../../domain/deployment/choose-node.ts';
import type { Pool } from '../../domain/fields.ts';
import { MOST_INSTANCES } from '../../domain/node/limits.ts';
import { SCHEDULER } from '../../domain/scheduler/state.ts';
import { FRESH_MS } from '../../domain/silence.ts';

/** Admitted nodes that were heard lately, and how much of each is held. In the order of their ids, so that a choice is the same each time. */
const CANDIDATES = `
  SELECT n.node_id, n.pool, n.region, n.cpu_millis, n.memory_mb, n.disk_gb,
         coalesce(a.cpu_millis, 0)::float8 AS used_cpu_millis, coalesce(a.memory_mb, 0)::float8 AS used_memory_mb,
         coalesce(a.disk_gb, 0)::float8 AS used_disk_gb, coalesce(a.instances, 0)::float8 AS instances
  FROM fleet.fleet_nodes n
  JOIN telemetry.scheduler s ON s.id = $1
  JOIN telemetry.node_liveness l ON l.node_id = n.node_id
  LEFT JOIN (
    SELECT node_id, sum(cpu_millis) AS cpu_millis, sum(memory_mb) AS memory_mb, sum(disk_gb) AS disk_gb,
           count(*) FILTER (WHERE kind = 'deployment_role') AS instances
    FROM fleet.fleet_allocations WHERE released_at IS NULL GROUP BY node_id
  ) a ON a.node_id = n.node_id
  WHERE n.status = 'active' AND n.schedulable AND n.cpu_millis IS NOT NULL AND s.heard_ms - l.heard_ms <= $2
  ORDER BY n.node_id`;

/** Instances of some deployments that are on a node now, by role. */
const RUNNING = `
  SELECT node_id, deployment_id, role, count(*)::float8 AS running
  FROM fleet.application_instances
  WHERE deployment_id = ANY($1::text[]) AND status IN ('reserved', 'deploying', 'ready')
  GROUP BY node_id, deployment_id, role`;

interface CandidateRow {
  readonly node_id: string;
  readonly pool: Pool;
  readonly region: string;
  readonly cpu_millis: number;
  readonly memory_mb: number;
  readonly disk_gb: number;
  readonly used_cpu_millis: number;
  readonly used_memory_mb: number;
  readonly used_disk_gb: number;
  readonly instances: number;
}

/** The nodes that take instances now, with what each has left and how many it has of these deployments' roles: two statements for any number. */
export async function findCandidates(pool: pg.Pool, deploymentIds: readonly string[]): Promise<Candidate[]> {
  const [{ rows: nodes }, { rows: running }] = await Promise.all([
    pool.query<CandidateRow>({ name: 'candidates', text: CANDIDATES, values: [SCHEDULER, FRESH_MS] }),
    pool.query<{ node_id: string; deployment_id: string; role: string; running: number }>({
      name: 'candidates_running',
      text: RUNNING,
      values: [deploymentIds],
    }),
  ]);
  const counts = Map.groupBy(running, ({ node_id }) => node_id);
  return nodes.map(({ node_id, pool: ofPool, region, ...sizes }) => ({
    node_id,
    pool: ofPool,
    region,
    capacity: { cpu_millis: sizes.cpu_millis, memory_mb: sizes.memory_mb, disk_gb: sizes.disk_gb },
    places: MOST_INSTANCES - sizes.instances,
    used: { cpu_millis: sizes.used_cpu_millis, memory_mb: sizes.used_memory_mb, disk_gb: sizes.used_disk_gb },
    running: new Map(
      (counts.get(node_id) ?? []).map((one) => [roleKey(one.deployment_id, one.role), one.running] as const),
    ),
  }));
}
