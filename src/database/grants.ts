import type { EventType } from '../domain/event/catalogue.ts';
import { EVENT_TYPES } from '../domain/event/catalogue.ts';

/** The programs that may append, by the group role that their login user is a member of. */
type AppendingRole = 'pushleft_operator' | 'pushleft_gateway' | 'pushleft_scheduler';

const OPERATOR: readonly AppendingRole[] = ['pushleft_operator'];
const GATEWAY: readonly AppendingRole[] = ['pushleft_gateway'];
const SCHEDULER: readonly AppendingRole[] = ['pushleft_scheduler'];

/** Who may append which event. Total over the catalogue: a new type does not compile until someone is named. */
export const appenders: Readonly<Record<EventType, readonly AppendingRole[]>> = {
  node_provisioning_requested: OPERATOR,
  node_capacity_recorded: OPERATOR,
  node_enrollment_secret_armed: OPERATOR,
  node_server_requested: OPERATOR,
  node_server_adopted: OPERATOR,
  node_server_running: OPERATOR,
  node_enrolled: GATEWAY,
  node_provisioning_failed: OPERATOR,
  node_provisioning_retried: OPERATOR,
  node_server_deleted: OPERATOR,
  node_admitted: OPERATOR,
  node_became_unhealthy: ['pushleft_operator', 'pushleft_scheduler'],
  node_recovered: GATEWAY,
  node_drain_started: OPERATOR,
  node_lost: ['pushleft_operator', 'pushleft_scheduler'],
  node_retired: OPERATOR,
  node_host_facts_changed: GATEWAY,
  certificate_authorized: GATEWAY,
  certificate_issued: GATEWAY,
  certificate_first_used: GATEWAY,
  certificates_revoked: ['pushleft_operator', 'pushleft_gateway'],
  certificate_conflict_seen: GATEWAY,
  ca_initialized: OPERATOR,
  ca_rotation_begun: OPERATOR,
  ca_issuer_switched: OPERATOR,
  ca_rotation_completed: OPERATOR,
  ca_rotation_aborted: OPERATOR,
  ca_rotation_refused: OPERATOR,
  gateway_certificate_issued: OPERATOR,
  log_checkpoint_signed: ['pushleft_operator', 'pushleft_scheduler'],
  pool_firewall_converged: OPERATOR,
  job_queued: ['pushleft_operator', 'pushleft_scheduler'],
  job_leased: GATEWAY,
  job_lease_expired: SCHEDULER,
  job_returned: GATEWAY,
  job_completed: GATEWAY,
  job_failed: ['pushleft_gateway', 'pushleft_scheduler'],
  node_drain_cancelled: OPERATOR,
  node_drain_overdue: SCHEDULER,
  node_taken_offline: OPERATOR,
  node_revoked: OPERATOR,
  node_cleanup_confirmed: GATEWAY,
  node_mesh_coordinator_set: OPERATOR,
  node_loss_held: ['pushleft_operator', 'pushleft_scheduler'],
  node_loss_released: ['pushleft_operator', 'pushleft_scheduler'],
  node_losses_frozen: OPERATOR,
  node_losses_thawed: OPERATOR,
  job_fenced: ['pushleft_operator', 'pushleft_scheduler'],
  deployment_created: OPERATOR,
  deployment_built: GATEWAY,
  deployment_became_live: SCHEDULER,
  deployment_degraded: SCHEDULER,
  deployment_recovered: SCHEDULER,
  deployment_failed: ['pushleft_operator', 'pushleft_gateway', 'pushleft_scheduler'],
  deployment_removal_requested: OPERATOR,
  deployment_removed: SCHEDULER,
  instance_requested: OPERATOR,
  instance_replacement_queued: ['pushleft_operator', 'pushleft_scheduler'],
  instance_placed: SCHEDULER,
  instance_unplaced: SCHEDULER,
  network_admitted: SCHEDULER,
  instance_ready: GATEWAY,
  instance_done: GATEWAY,
  instance_failed: ['pushleft_gateway', 'pushleft_scheduler'],
  instance_teardown_queued: SCHEDULER,
  instance_removed: ['pushleft_gateway', 'pushleft_scheduler'],
  ingress_route_published: SCHEDULER,
  ingress_route_activated: GATEWAY,
  ingress_route_relocated: GATEWAY,
  ingress_route_failed: ['pushleft_operator', 'pushleft_gateway', 'pushleft_scheduler'],
  ingress_route_removal_queued: SCHEDULER,
  ingress_route_removed: GATEWAY,
  database_instance_created: OPERATOR,
  database_instance_ready: GATEWAY,
  database_instance_failed: ['pushleft_gateway', 'pushleft_scheduler'],
  database_instance_stranded: ['pushleft_operator', 'pushleft_scheduler'],
  database_instance_released: OPERATOR,
};

const WRITERS = ['pushleft_operator', 'pushleft_gateway', 'pushleft_scheduler'] as const;
const EVERYBODY = [...WRITERS, 'pushleft_reader'] as const;

/** Privileges on schemas, on every table of schemas, or on single tables or functions. */
interface Grant {
  readonly on: 'schema' | 'tables of' | 'table' | 'function';
  readonly names: readonly string[];
  readonly privileges: readonly string[];
  readonly to: readonly string[];
}

/** On the tables that every rebuild makes anew. */
const PROJECTION_GRANTS: readonly Grant[] = [
  { on: 'schema', names: ['fleet'], privileges: ['USAGE'], to: EVERYBODY },
  { on: 'tables of', names: ['fleet'], privileges: ['SELECT'], to: EVERYBODY },
  { on: 'tables of', names: ['fleet'], privileges: ['INSERT', 'UPDATE', 'DELETE'], to: WRITERS },
];

const READABLE_TELEMETRY = [
  'telemetry.node_liveness',
  'telemetry.job_leases',
  'telemetry.programs',
  'telemetry.scheduler',
];

const GRANTS: readonly Grant[] = [
  { on: 'schema', names: ['log', 'telemetry'], privileges: ['USAGE'], to: EVERYBODY },
  { on: 'tables of', names: ['log'], privileges: ['SELECT'], to: EVERYBODY },
  { on: 'table', names: READABLE_TELEMETRY, privileges: ['SELECT'], to: ['pushleft_reader'] },
  { on: 'tables of', names: ['telemetry'], privileges: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'], to: WRITERS },
  { on: 'function', names: ['log.append(bigint, text[], bytea[])'], privileges: ['EXECUTE'], to: WRITERS },
  ...PROJECTION_GRANTS,
];

/** The grants on the projections' tables alone: part of {@link grantStatements}. */
export function projectionGrants(): string[] {
  return PROJECTION_GRANTS.map(toStatement);
}

/**
 * The grants of every group role, as statements that a database administrator could run (`db roles` prints them). Repeating them
 * changes nothing, and at no moment do they take away what stays. Readers read; writers append through `log.append` alone and write the
 * tables that their batches fold into.
 */
export function grantStatements(): string[] {
  return [...GRANTS.map(toStatement), ...appendGrants()];
}

/** Who may append what, as rows that `log.append` looks at. Writes nothing where all is as it should be. */
export function appendGrants(): string[] {
  const rows = EVENT_TYPES.flatMap((type) => appenders[type].map((role) => `('${role}', '${type}')`)).join(', ');
  return [
    `INSERT INTO log.append_grants (role, event_type) VALUES ${rows} ON CONFLICT DO NOTHING`,
    `DELETE FROM log.append_grants WHERE (role, event_type) NOT IN (VALUES ${rows})`,
  ];
}

/** A query for one row, `missing`: whether a role lacks a privilege that {@link grantStatements} give. */
export function missingGrantsQuery(): string {
  return `SELECT ${GRANTS.map(missing).join(' OR ')} AS missing`;
}

function toStatement({ on, names, privileges, to }: Grant): string {
  const object = on === 'tables of' ? 'ALL TABLES IN SCHEMA' : on.toUpperCase();
  return `GRANT ${privileges.join(', ')} ON ${object} ${names.join(', ')} TO ${to.join(', ')}`;
}

/** An SQL condition: one of the roles lacks one of the privileges. The database's own functions say so, whoever granted it. */
function missing({ on, names, privileges, to }: Grant): string {
  const objects =
    on === 'tables of'
      ? `(SELECT oid FROM pg_class WHERE relkind = 'r' AND relnamespace = ANY(${array(names)}::regnamespace[]))`
      : `(SELECT unnest(${array(names)}))`;
  const has = `has_${on === 'tables of' ? 'table' : on}_privilege`;
  return `EXISTS (
    SELECT FROM unnest(${array(to)}::name[]) AS role, unnest(${array(privileges)}) AS privilege, ${objects} AS object(id)
    WHERE NOT ${has}(role, object.id, privilege))`;
}

function array(values: readonly string[]): string {
  return `ARRAY[${values.map((value) => `'${value}'`).join(', ')}]`;
}
