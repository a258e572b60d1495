import type { EventType } from './catalogue.ts';

/** What each event says has happened: one line for operators, in docs/events.md. Total over the catalogue. */
export const meanings: Readonly<Record<EventType, string>> = {
  node_provisioning_requested: 'An operator asked for a node; nothing exists at the provider yet.',
  node_capacity_recorded: 'What jobs may use of the node: what its server type has, less the reserve of the host.',
  node_enrollment_secret_armed:
    'A server may be created with this enrolment secret, which can be redeemed once until it ends.',
  node_server_requested: 'The provider accepted to create a server for the node.',
  node_server_adopted: 'A server that carries the label of the node was found at the provider and is used for it.',
  node_server_running: 'The server of the node runs, and this is what the provider says of it.',
  node_enrolled: 'The node has its first certificate and is active.',
  node_provisioning_failed:
    'The node was given up: its enrolment secrets ended unredeemed, or its server is broken or gone.',
  node_provisioning_retried: 'An operator started the provisioning of a failed node again.',
  node_server_deleted: 'The provider no longer has the server of the node.',
  node_admitted: "The node may be given its pool's jobs.",
  node_host_facts_changed: 'The agent reported facts of its host that differ from those known before.',
  node_became_unhealthy: 'The node was not heard for a while; it is given no work until it is heard again.',
  node_recovered: 'The node was heard again and is active.',
  node_drain_started: 'The node is given no new work; what it has, it finishes.',
  node_lost: 'The node was silent for too long; its work runs elsewhere and it never gets any again.',
  node_retired: 'The node has left the fleet for good.',
  certificate_authorized:
    'A certificate may be signed over exactly these fields: for an enrolment secret, which is used up, or as a renewal of another one.',
  certificate_issued: 'The certificate was signed, and recorded before it was handed out.',
  certificate_first_used: 'An agent used the certificate; its enrolment cannot be repeated any more.',
  certificates_revoked: 'The certificates of the node are refused from now on.',
  certificate_conflict_seen: 'Two hosts use the identity of one node in turn: a copied disk or a restored snapshot.',
  ca_initialized: 'The CA that issues the certificates of the fleet was made known to the log.',
  ca_rotation_begun: 'A second CA is trusted from now on; the first one goes on issuing.',
  ca_issuer_switched: 'Every live gateway trusts the second CA; from now on only that one issues.',
  ca_rotation_completed: 'The first CA is not trusted any more, and these certificates of it are revoked.',
  ca_rotation_aborted: 'The second CA was given up before it had issued anything.',
  ca_rotation_refused:
    'A step of a rotation was attempted and refused, for this reason and because of these nodes and gateways.',
  gateway_certificate_issued:
    'A server certificate for gateways was signed, and recorded before it was put into its file.',
  log_checkpoint_signed:
    'The head of the log was signed with the key of an operator and written to a folder outside the database.',
  pool_firewall_converged: 'The firewall of the pool at the provider has exactly these rules.',
  job_queued: 'A job waits for one node or for any node of a pool.',
  job_leased: 'A node has the job until the lease ends; re-issued when the answer to the same request was lost.',
  job_lease_expired: 'The node was not heard in time; its token is worthless and the job waits again.',
  job_returned:
    'The agent handed the job back undone; the attempt counts only where the job was handed back too often.',
  job_completed: 'The job succeeded; its result lies outside the log.',
  job_failed:
    'The job failed: as its agent reported, because its attempts are used up, or because its payload is lost.',
};
