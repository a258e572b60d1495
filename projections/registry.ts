import { applicationInstances } from './application-instances.ts';
import { caRotations } from './ca-rotations.ts';
import { databaseInstances } from './database-instances.ts';
import { deployments } from './deployments.ts';
import { fleetAllocations } from './fleet-allocations.ts';
import { fleetCa } from './fleet-ca.ts';
import { fleetEvents } from './fleet-events.ts';
import { fleetNodeCertificates } from './fleet-node-certificates.ts';
import { fleetNodes } from './fleet-nodes.ts';
import { gatewayBeacons } from './gateway-beacons.ts';
import { ingressRoutes } from './ingress-routes.ts';
import { jobLeases } from './job-leases.ts';
import { jobPayloads } from './job-payloads.ts';
import { jobs } from './jobs.ts';
import { networkAttachmentRequests } from './network-attachment-requests.ts';
import { nodeLiveness } from './node-liveness.ts';
import { nodeLossHolds } from './node-loss-holds.ts';
import { poolFirewalls } from './pool-firewalls.ts';
import type { Projection } from './projection.ts';
import { scheduler } from './scheduler.ts';
import type { Row } from './table.ts';

/** Every table that events write or decisions read. Adding a projection is one file and one line here. */
export const registry = {
  fleet_nodes: fleetNodes,
  fleet_node_certificates: fleetNodeCertificates,
  fleet_ca: fleetCa,
  ca_rotations: caRotations,
  jobs,
  pool_firewalls: poolFirewalls,
  fleet_allocations: fleetAllocations,
  node_loss_holds: nodeLossHolds,
  deployments,
  application_instances: applicationInstances,
  network_attachment_requests: networkAttachmentRequests,
  ingress_routes: ingressRoutes,
  database_instances: databaseInstances,
  fleet_events: fleetEvents,
  job_leases: jobLeases,
  job_payloads: jobPayloads,
  node_liveness: nodeLiveness,
  gateway_beacons: gatewayBeacons,
  scheduler,
} as const;

/** The name of a table in the registry. */
export type TableName = keyof typeof registry;

/** The row type of a table. */
export type RowOf<T extends TableName> = (typeof registry)[T] extends Projection<infer R> ? R : never;

/** All tables' names, in the registry's order. */
export const TABLE_NAMES = Object.keys(registry) as readonly TableName[];

/** The projection of a table, its row type forgotten: for code that treats all tables alike. */
export function projectionOf(name: TableName): Projection<Row> {
  return registry[name];
}

/** The tables that are folds of the log alone: what rebuild writes and verify compares. */
export const DISPOSABLE: readonly TableName[] = TABLE_NAMES.filter((name) => registry[name].table.schema === 'fleet');
