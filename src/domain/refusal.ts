import type { Refusal } from './result.ts';

/**
 * Every code with which a command can be refused, and what the person who asked reads.
 * The tables of HTTP statuses (src/gateway) and exit codes (cli) are checked by the compiler against these keys.
 * `message` says what is the matter, `remedy` what to do about it; `{name}` is replaced by the refusal's detail of that name.
 */
const refusals = {
  node_unknown: {
    message: 'no node is known by {node}',
    remedy: 'see `pushleft-controller fleet list` for the names and ids',
  },
  node_ambiguous: { message: '{node} fits more than one node', remedy: 'give the whole id' },
  node_name_taken: { message: 'the name {name} belongs to another node', remedy: 'choose another --name' },
  node_exists: { message: 'node {node_id} was requested before, differently', remedy: 'use --resume to go on with it' },
  node_not_provisioning: {
    message: 'node {node_id} is {status}, not provisioning',
    remedy: 'only a node that is being provisioned can take this step',
  },
  node_not_failed: {
    message: 'node {node_id} is {provision_state}, not failed',
    remedy: 'use `fleet provision --resume` for a node whose provisioning has not failed',
  },
  node_not_active: {
    message: 'the node is {status}',
    remedy: 'wait until it has enrolled, see `pushleft-controller fleet why`',
  },
  node_silent: {
    message: 'the node was last heard {silent_ms} ms ago, more than {limit_ms} ms',
    remedy: 'check the agent: `systemctl status pushleft-agent` on the host',
  },
  capacity_unknown: {
    message: 'no capacity is recorded for the node',
    remedy: 'run `pushleft-controller fleet provision --resume` so that it is recorded',
  },
  node_not_enrolled: {
    message: 'node {node_id} has never enrolled',
    remedy: 'use `pushleft-controller fleet provision --resume` to go on with it',
  },
  node_retired: {
    message: 'node {node_id} is retired',
    remedy: 'a retired node does not come back: provision a new one',
  },
  node_revoked: {
    message: 'node {node_id} is revoked: its host is not trusted any more',
    remedy: 'take it out of service with `pushleft-controller fleet decommission`, and provision another one',
  },
  node_lost: {
    message: 'node {node_id} is lost: its work runs elsewhere',
    remedy: 'see `pushleft-controller fleet reclaim show`, then `fleet decommission` it',
  },
  term_superseded: {
    message: 'another scheduler leads (term {term}, this one had {given_term})',
    remedy: 'nothing has to be done: the one that leads does the work',
  },
  certificate_not_found: {
    message: 'no certificate is known by {certificate}',
    remedy: 'see `pushleft-controller fleet certificates list`',
  },
  certificate_ambiguous: { message: '{certificate} fits more than one certificate', remedy: 'give more of it' },
  renewal_not_due: {
    message: 'the certificate is not due for renewal before {due_at}',
    remedy: 'nothing has to be done: the agent renews by itself',
  },
  renewal_too_often: {
    message: 'the certificate was renewed {renewals} times and no renewal was used',
    remedy: 'check the disk of the agent: it asks again and again without keeping what it is given',
  },
  issuer_not_current: {
    message: 'this CA may not issue now, only {issuer_ca_sha256} may',
    remedy: 'run `pushleft-controller fleet ca sync` on the host of the gateway',
  },
  ca_not_initialized: {
    message: "the log does not know the fleet's CA",
    remedy: 'run `pushleft-controller fleet ca init` on the host of the gateway',
  },
  ca_already_initialized: {
    message: "the fleet's CA is {ca_sha256}, another one than in the files",
    remedy: 'point the PUSHLEFT_AGENT_CA_* variables at the files of that CA, or rotate to a new one',
  },
  ca_rotation_running: {
    message: 'rotation {rotation_id} is under way',
    remedy: 'finish it with `fleet ca rotate --complete`, or take it back with `--abort`',
  },
  ca_rotation_unknown: {
    message: 'rotation {rotation_id} is not under way',
    remedy: 'see `pushleft-controller fleet ca status`',
  },
  ca_no_rotation: {
    message: 'no rotation of the CA is under way',
    remedy: 'begin one with `pushleft-controller fleet ca rotate --begin`',
  },
  ca_files_differ: {
    message: "the CA in this host's files is {file_ca_sha256}, the fleet's is {ca_sha256}",
    remedy: 'run `pushleft-controller fleet ca sync` on this host first',
  },
  ca_used_before: {
    message: 'the CA {ca_sha256} was used before',
    remedy: 'run it again: a new one is made',
  },
  ca_not_trusted_everywhere: {
    message: 'not every gateway trusts the new CA yet: {gateways}',
    remedy: 'run `pushleft-controller fleet ca sync` on their hosts, or stop them; then run --begin again',
  },
  ca_rotation_not_issuing: {
    message: 'the new CA does not issue yet',
    remedy: 'run `pushleft-controller fleet ca rotate --begin` again: it goes on where it was cut off',
  },
  ca_rotation_blocked: {
    message: '{node_count} nodes would be locked out, or gateways would turn agents away',
    remedy: 'wait for the nodes that renew, re-enrol the others (`fleet reenroll`), and look at `fleet ca status`',
  },
  ca_bundle_outdated: {
    message: 'the CA bundle lacks the CA {ca_sha256}, so its host would believe no gateway',
    remedy: 'run this again; where PUSHLEFT_FLEET_GATEWAY_CA_FILE is set, bring that file up to date or unset it',
  },
  ca_not_served_everywhere: {
    message: 'the rotation is completed, and these gateways still serve a certificate of the old CA: {gateways}',
    remedy: 'run `pushleft-controller fleet ca sync` on their hosts, or stop them; then run --complete again',
  },
  ca_rotation_too_large: {
    message: '{certificates} certificates of the old CA would have to be revoked at once',
    remedy: 'revoke those of lost nodes first: `pushleft-controller fleet certificates revoke`',
  },
  ca_missing: {
    message: '{ca_cert} holds no CA certificate',
    remedy: 'give --dns or --ip, the names of the gateway, so that the missing files are made',
  },
  ca_key_missing: {
    message: 'this host does not hold the key of the CA {ca_sha256}',
    remedy: 'run this on the host that holds it, or carry the key here and run `fleet ca sync --from DIR`',
  },
  gateway_certificate_unreadable: {
    message: '{gateway_cert} or {gateway_key} cannot be read, or names no host',
    remedy: 'put them back, or move both away and make new ones with `fleet ca init --dns NAME`',
  },
  gateway_names_differ: {
    message: '{gateway_cert} is there and is not for {names}',
    remedy: 'move it away and run this again, so that one for other names is made; the key stays',
  },
  ca_has_issued: {
    message: 'the new CA has issued already (certificate {certificate_id}), so the rotation can only go on',
    remedy: 'go on with it: `pushleft-controller fleet ca rotate --complete`',
  },
  enrollment_refused: { message: 'enrolment refused', remedy: 'ask an operator' },
  certificate_unknown: { message: 'the certificate is not accepted', remedy: 'ask an operator' },
  certificate_expired: { message: 'the certificate has expired', remedy: 'ask an operator to re-enrol the node' },
  clock_unsafe: {
    message: "the time of the {clock} is {skew_ms} ms off the database's clock: no certificate is issued until {until}",
    remedy: 'see `pushleft-controller fleet doctor`, and the runbook on clocks in docs/operations.md',
  },
  certificate_mismatch: {
    message: 'the certificate is not the one that was authorised',
    remedy: 'ask for a new certificate',
  },
  job_unknown: { message: 'no job has the id {job_id}', remedy: 'see `pushleft-controller job list`' },
  job_target_unclear: {
    message: 'job {job_id} is to be for one node or for one pool, not for both or neither',
    remedy: 'give either --node or --pool',
  },
  job_exists: { message: 'job {job_id} was queued before, differently', remedy: 'queue it under a new id' },
  node_queue_full: {
    message: '{jobs} jobs wait for node {node_id} already',
    remedy: 'wait until it has done some: `pushleft-controller job list --node`',
  },
  lease_conflict: { message: 'the lease is not held with this token', remedy: 'stop the work and lease again' },
  deployment_unknown: {
    message: 'no deployment is known by {deployment}',
    remedy: 'see `pushleft-controller workload list`',
  },
  deployment_name_taken: {
    message: 'a deployment of the name {name} is there already, and differs from the file',
    remedy: 'remove it first (`pushleft-controller workload remove`), or choose another name',
  },
  deployment_ended: {
    message: 'deployment {name} is {status}',
    remedy: 'see `pushleft-controller workload show`',
  },
  hostname_taken: {
    message: 'the hostname {hostname} belongs to deployment {deployment_id}',
    remedy: 'choose another hostname, or remove that deployment',
  },
  member_unknown: {
    message: 'node {node_id} is named as a member and is not known',
    remedy: 'see `pushleft-controller fleet list` for the ids',
  },
  instance_not_waiting: {
    message: 'instance {instance_id} is {status}',
    remedy: 'nothing has to be done: somebody else was faster',
  },
  release_not_done: {
    message: 'instance {instance_id} waits for the release of its deployment',
    remedy: 'nothing has to be done: it is placed once the release is done',
  },
  node_not_schedulable: {
    message: 'node {node_id} takes no work',
    remedy: 'see `pushleft-controller fleet why`',
  },
  node_not_member: {
    message: 'node {node_id} is no member of the sealed environment',
    remedy: 'place it on one of the members',
  },
  node_not_eligible: {
    message: 'node {node_id} is of another pool or region',
    remedy: "place it on a node of the deployment's pool and regions",
  },
  node_full: {
    message: 'node {node_id} lacks {lacking}',
    remedy: 'see `pushleft-controller fleet list`, provision another node, or ask for less',
  },
  subnet_slots_used_up: {
    message: 'every slot of the subnet of node {node_id} was used once',
    remedy: 'drain the node and replace it',
  },
  network_not_admitted: {
    message: 'node {node_id} was not heard since the network was asked for',
    remedy: 'wait for it, see `pushleft-controller fleet why`',
  },
  bridge_netfilter_off: {
    message: 'bridged frames pass the firewall of node {node_id} by',
    remedy: 'load br_netfilter on it: `modprobe br_netfilter`',
  },
  database_unknown: {
    message: 'no database is known by {database}',
    remedy: 'see `pushleft-controller workload database list`',
  },
  database_name_taken: {
    message: 'a database of the name {name} is there already, and differs',
    remedy: 'choose another name',
  },
  database_not_stranded: {
    message: 'database {database_id} is {status}, not stranded',
    remedy: 'only one whose node is lost can be released',
  },
  database_held: {
    message: 'database {database} holds a part of node {node_id}: its data is on that disk',
    remedy: 'rescue the data, then `pushleft-controller workload database release`',
  },
  node_not_draining: {
    message: 'node {node_id} is {status}, not draining',
    remedy: 'drain it first: `pushleft-controller fleet drain`',
  },
  drain_has_moved: {
    message: 'something of node {node_id} has moved already ({instance_id})',
    remedy: 'let the drain end, then decommission the node',
  },
  node_busy: {
    message: 'node {node_id} still has {allocations} allocations, {leases} leases and {hostnames} hostnames',
    remedy: 'see `pushleft-controller fleet why`; `fleet drain --migrate` moves services away',
  },
  node_in_service: {
    message: 'node {node_id} is {status}',
    remedy: 'drain it first: `pushleft-controller fleet drain`',
  },
  pool_not_held: {
    message: 'no node of pool {pool} is held',
    remedy: 'nothing has to be done',
  },
  losses_held: {
    message: 'nodes of pool {pool} are not given up by themselves: {silent} of them fell silent together',
    remedy: 'look at the network and the gateways; `pushleft-controller fleet loss release` gives them up',
  },
  losses_frozen: {
    message: 'no node is given up by itself: an operator has frozen that',
    remedy: '`pushleft-controller fleet loss thaw`',
  },
} as const satisfies Record<string, { message: string; remedy: string }>;

/** The closed set of refusal codes. */
export type RefusalCode = keyof typeof refusals;

/** Fills a refusal's message and remedy with its details, for people. */
export function describeRefusal({ code, details }: Refusal): { message: string; remedy: string } {
  const fill = (text: string) => text.replaceAll(/\{(\w+)\}/g, (_, name: string) => (details[name] ?? name).toString());
  const { message, remedy } = refusals[code];
  return { message: fill(message), remedy: fill(remedy) };
}
