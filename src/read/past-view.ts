import type { EventLog } from '../log/event-log.ts';
import type { Until } from '../projector/fold-log.ts';
import type { FoldState } from '../projector/fold-state.ts';
import { foldAt } from '../projector/time-travel.ts';
import { type FleetView, MATCHES_MAX } from './fleet-view.ts';
import { pastRows } from './past-rows.ts';

const TABLES = [
  'fleet_nodes',
  'fleet_node_certificates',
  'fleet_ca',
  'ca_rotations',
  'jobs',
  'fleet_events',
  'pool_firewalls',
  'fleet_allocations',
  'node_loss_holds',
  'deployments',
  'application_instances',
  'ingress_routes',
  'database_instances',
] as const;

/** The fleet as it was: the log's prefix folded in memory. The order of rows is that of the live view. */
export async function pastView(log: Pick<EventLog, 'read'>, until: Until): Promise<FleetView> {
  return viewOf(await foldAt(log, TABLES, until));
}

function viewOf(state: FoldState): FleetView {
  const nodes = () => [...state.rows('fleet_nodes').values()];
  const certificates = () => [...state.rows('fleet_node_certificates').values()];
  const jobs = () => [...state.rows('jobs').values()];
  return {
    moment: { position: state.position, at: state.at, nowMs: state.at },
    telemetry: null,
    rows: pastRows(state),
    nodes: async ({ pool, status }) =>
      nodes()
        .filter((node) => (pool ?? node.pool) === node.pool && (status ?? node.status) === node.status)
        .sort((a, b) => compare(a.pool, b.pool) || compare(a.name, b.name)),
    nodesMatching: async (reference) =>
      nodes()
        .filter((node) => node.name === reference || node.node_id.startsWith(reference))
        .sort((a, b) => Number(b.name === reference) - Number(a.name === reference) || compare(a.node_id, b.node_id))
        .slice(0, MATCHES_MAX),
    certificates: async (nodeId) =>
      certificates()
        .filter((certificate) => certificate.node_id === nodeId)
        .sort((a, b) => b.authorized_at - a.authorized_at || compare(a.certificate_id, b.certificate_id)),
    certificatesOf: async ({ nodeId, inForceAt, limit }) =>
      certificates()
        .filter((certificate) => (nodeId ?? certificate.node_id) === certificate.node_id)
        .filter((c) => inForceAt === undefined || (c.revoked_at === null && c.not_after > inForceAt))
        .sort((a, b) => b.authorized_position - a.authorized_position)
        .slice(0, limit),
    certificatesMatching: async ({ by, beginning }) =>
      certificates()
        .filter((certificate) => certificate[by]?.startsWith(beginning) === true)
        .sort((a, b) => compare(a[by] ?? '', b[by] ?? ''))
        .slice(0, MATCHES_MAX),
    ca: async () => state.rows('fleet_ca').get('fleet'),
    rotation: async (rotationId) => state.rows('ca_rotations').get(rotationId),
    jobs: async ({ nodeId, status, kind, limit }) =>
      jobs()
        .filter((job) => nodeId === undefined || job.node_id === nodeId || job.leased_to === nodeId)
        .filter((job) => (status ?? job.status) === job.status && (kind ?? job.kind) === job.kind)
        .sort((a, b) => b.queued_position - a.queued_position)
        .slice(0, limit),
    jobsMatching: async (reference) =>
      jobs()
        .filter((job) => job.job_id.startsWith(reference))
        .sort((a, b) => compare(a.job_id, b.job_id))
        .slice(0, MATCHES_MAX),
    timeline: async (nodeId, limit) =>
      [...state.rows('fleet_events').values()]
        .filter((event) => event.node_id === nodeId && event.job_id === null)
        .sort((a, b) => a.position - b.position)
        .slice(-limit),
    firewalls: async () => [...state.rows('pool_firewalls').values()].sort((a, b) => compare(a.pool, b.pool)),
  };
}

/** By bytes, as the tables' "C" collation orders the ASCII that they hold. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
