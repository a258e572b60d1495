import type { EventType } from './catalogue.ts';

/** An event as operators read and filter it: the row of `fleet_events`. */
export interface EventRow {
  readonly position: number;
  readonly at: number;
  readonly type: EventType;
  readonly stream: string;
  readonly node_id: string | null;
  readonly job_id: string | null;
  readonly pool: string | null;
  readonly actor_kind: string;
  readonly actor_id: string;
  readonly authorises: boolean;
  readonly offers_work: boolean;
  readonly data: unknown;
}

/** What a gateway has to look at again after an event: who may speak, and whether there is work. */
interface GatewayEffect {
  readonly authorises: boolean;
  readonly offers_work: boolean;
}

const neither: GatewayEffect = { authorises: false, offers_work: false };
const authorises: GatewayEffect = { authorises: true, offers_work: false };
const offersWork: GatewayEffect = { authorises: false, offers_work: true };
const both: GatewayEffect = { authorises: true, offers_work: true };

/**
 * Whether an event changes what a gateway keeps of certificates and nodes (`authorises`) or may give a waiting node a job
 * (`offers_work`). Total over the catalogue: a new event type does not compile until someone has thought about it here.
 */
export const gatewayEffects: Readonly<Record<EventType, GatewayEffect>> = {
  node_provisioning_requested: neither,
  node_capacity_recorded: neither,
  node_enrollment_secret_armed: neither,
  node_server_requested: neither,
  node_server_adopted: neither,
  node_server_running: neither,
  node_enrolled: both,
  node_provisioning_failed: neither,
  node_provisioning_retried: neither,
  node_server_deleted: neither,
  node_admitted: both,
  node_became_unhealthy: authorises,
  node_recovered: both,
  node_drain_started: authorises,
  node_lost: authorises,
  node_retired: authorises,
  node_host_facts_changed: authorises,
  certificate_authorized: neither,
  certificate_issued: authorises,
  certificate_first_used: authorises,
  certificates_revoked: authorises,
  certificate_conflict_seen: authorises,
  ca_initialized: neither,
  ca_rotation_begun: neither,
  ca_issuer_switched: neither,
  ca_rotation_completed: authorises,
  ca_rotation_aborted: neither,
  ca_rotation_refused: neither,
  gateway_certificate_issued: neither,
  log_checkpoint_signed: neither,
  pool_firewall_converged: neither,
  job_queued: offersWork,
  job_leased: neither,
  job_lease_expired: offersWork,
  job_returned: offersWork,
  job_completed: neither,
  job_failed: neither,
  node_drain_cancelled: both,
  node_drain_overdue: neither,
  node_taken_offline: authorises,
  node_revoked: both,
  node_cleanup_confirmed: neither,
  node_mesh_coordinator_set: neither,
  node_loss_held: neither,
  node_loss_released: neither,
  node_losses_frozen: neither,
  node_losses_thawed: neither,
  job_fenced: neither,
  deployment_created: neither,
  deployment_built: neither,
  deployment_became_live: neither,
  deployment_degraded: neither,
  deployment_recovered: neither,
  deployment_failed: neither,
  deployment_removal_requested: neither,
  deployment_removed: neither,
  instance_requested: neither,
  instance_replacement_queued: neither,
  instance_placed: neither,
  instance_unplaced: neither,
  network_admitted: neither,
  instance_ready: neither,
  instance_done: neither,
  instance_failed: neither,
  instance_teardown_queued: neither,
  instance_removed: neither,
  ingress_route_published: neither,
  ingress_route_activated: neither,
  ingress_route_relocated: neither,
  ingress_route_failed: neither,
  ingress_route_removal_queued: neither,
  ingress_route_removed: neither,
  database_instance_created: neither,
  database_instance_ready: neither,
  database_instance_failed: neither,
  database_instance_stranded: neither,
  database_instance_released: neither,
};
