import type { EventType } from '../domain/event/catalogue.ts';
import { EVENT_TYPES } from '../domain/event/catalogue.ts';

/** The programs that may append, by the group role that their login user is a member of. */
type AppendingRole = 'pushleft_operator' | 'pushleft_gateway' | 'pushleft_scheduler';

const OPERATOR: readonly AppendingRole[] = ['pushleft_operator'];
const GATEWAY: readonly AppendingRole[] = ['pushleft_gateway'];

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
  node_host_facts_changed: GATEWAY,
  certificate_authorized: GATEWAY,
  certificate_issued: GATEWAY,
  certificate_first_used: GATEWAY,
  certificates_revoked: OPERATOR,
  pool_firewall_converged: OPERATOR,
  job_queued: OPERATOR,
  job_leased: GATEWAY,
  job_lease_expired: ['pushleft_scheduler'],
  job_returned: GATEWAY,
  job_completed: GATEWAY,
  job_failed: ['pushleft_gateway', 'pushleft_scheduler'],
};

const WRITERS = 'pushleft_operator, pushleft_gateway, pushleft_scheduler';

/**
 * The grants of every group role, as statements that a database administrator could run (`db roles` prints them). Repeating them
 * changes nothing. Readers read; writers append through `log.append` alone and write the tables that their batches fold into.
 */
export function grantStatements(): string[] {
  const granted = EVENT_TYPES.flatMap((type) => appenders[type].map((role) => `('${role}', '${type}')`));
  return [
    `GRANT USAGE ON SCHEMA log, fleet, telemetry TO ${WRITERS}, pushleft_reader`,
    `GRANT SELECT ON ALL TABLES IN SCHEMA log, fleet TO ${WRITERS}, pushleft_reader`,
    `GRANT SELECT ON telemetry.node_liveness, telemetry.job_leases, telemetry.programs TO pushleft_reader`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA telemetry TO ${WRITERS}`,
    `GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA fleet TO ${WRITERS}`,
    `GRANT EXECUTE ON FUNCTION log.append(bigint, text[], bytea[]) TO ${WRITERS}`,
    `DELETE FROM log.append_grants`,
    `INSERT INTO log.append_grants (role, event_type) VALUES ${granted.join(', ')}`,
  ];
}
