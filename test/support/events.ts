import type { EventData, EventOf, EventType, FleetEvent } from '../../src/domain/event/catalogue.ts';
import { NOTHING_RECLAIMED, workloadSamples } from './workload-events.ts';

/** The moment at which a test's history begins, ms. */
export const START = Date.UTC(2026, 2, 1, 12);
/** A minute, ms. */
export const MINUTE = 60_000;

/** 64 hex digits that say in a failing test what they stand for: `digest('5ec')` is `5ec5ec5e…`. */
export function digest(pattern: string): string {
  return pattern.repeat(64).slice(0, 64);
}

/** The node of most tests. */
export const NODE = '10000000-0000-4000-8000-00000000000a';
/** Another node, in the same pool. */
export const OTHER_NODE = '10000000-0000-4000-8000-00000000000b';
/** The job of most tests. */
export const JOB = '20000000-0000-4000-8000-000000000001';
/** Another job, queued later. */
export const LATER_JOB = '20000000-0000-4000-8000-000000000002';
/** A lease request. */
export const REQUEST = '30000000-0000-4000-8000-000000000001';
/** Another lease request. */
export const OTHER_REQUEST = '30000000-0000-4000-8000-000000000002';
/** Serial number of the node's first certificate. */
export const SERIAL = '0a'.repeat(16);
/** Serial number of its second. */
export const SECOND_SERIAL = '0b'.repeat(16);
/** Fingerprint of the fleet's first CA. */
export const CA = digest('ca');
/** Fingerprint of the CA that a rotation goes to. */
export const NEW_CA = digest('cb');
/** The rotation of most tests. */
export const ROTATION = '70000000-0000-4000-8000-000000000001';
/** SHA-256 of the secret that was armed first. */
export const SECRET = digest('5ec1');
/** SHA-256 of one that was armed later. */
export const SECOND_SECRET = digest('5ec2');
/** Fingerprint of the first certificate. */
export const FINGERPRINT = digest('f1');
/** Fingerprint of the second. */
export const SECOND_FINGERPRINT = digest('f2');
/** SHA-256 of a lease's token. */
export const TOKEN = digest('70');
/** SHA-256 of another lease's token. */
export const OTHER_TOKEN = digest('71');
/** The agent's public key, as far as a decision looks at it. */
const PUBLIC_KEY = Buffer.from('a P-256 key of the agent').toString('base64');
/** Somebody else's. */
export const OTHER_PUBLIC_KEY = Buffer.from('a P-256 key of a stranger').toString('base64');
/** A day: how long certificates last here, ms. */
export const CERTIFICATE_LIFETIME_MS = 24 * 60 * MINUTE;

/** A certificate's text, as far as a schema looks at it. */
export function pem(base64: string): string {
  return `-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----\n`;
}

/** One event of each type, telling one story with fixed ids. Total over the catalogue, and what the golden files hold. */
export const sample: { readonly [T in EventType]: EventOf<T> } = {
  ...workloadSamples,
  node_provisioning_requested: event('node_provisioning_requested', {
    node_id: NODE,
    name: 'app-fsn1-7k2m',
    pool: 'application',
    provider: 'hetzner',
    region: 'fsn1',
    server_type: 'cx33',
    image: 'debian-13',
    placement_group: null,
  }),
  node_capacity_recorded: event('node_capacity_recorded', {
    node_id: NODE,
    cpu_millis: 3_500,
    memory_mb: 7_168,
    disk_gb: 70,
    architecture: 'x86',
  }),
  node_enrollment_secret_armed: event('node_enrollment_secret_armed', {
    node_id: NODE,
    secret_sha256: SECRET,
    expires_at: START + 15 * MINUTE,
    ca_sha256s: [],
  }),
  node_server_requested: event('node_server_requested', { node_id: NODE, server_id: 4711 }),
  node_server_adopted: event('node_server_adopted', { node_id: NODE, server_id: 4712 }),
  node_server_running: event('node_server_running', {
    node_id: NODE,
    server_id: 4711,
    server_type: 'cx33',
    location: 'fsn1',
    image: 'debian-13',
    public_ipv4: '203.0.113.7',
    public_ipv6: '2001:db8:7::/64',
    private_ipv4: null,
  }),
  node_enrolled: event('node_enrolled', { node_id: NODE, certificate_id: SERIAL }),
  node_provisioning_failed: event('node_provisioning_failed', { node_id: NODE, reason: 'enrollment_secret_expired' }),
  node_provisioning_retried: event('node_provisioning_retried', { node_id: NODE }),
  node_server_deleted: event('node_server_deleted', { node_id: NODE, server_id: 4711 }),
  node_admitted: event('node_admitted', { node_id: NODE }),
  node_became_unhealthy: event('node_became_unhealthy', { node_id: NODE, silent_ms: 90_000 }),
  node_recovered: event('node_recovered', { node_id: NODE }),
  node_drain_started: event('node_drain_started', {
    node_id: NODE,
    migrate: false,
    max_in_flight: null,
    deadline_at: null,
  }),
  node_lost: event('node_lost', { node_id: NODE, silent_ms: 300_000, ...NOTHING_RECLAIMED }),
  node_retired: event('node_retired', { node_id: NODE }),
  node_host_facts_changed: event('node_host_facts_changed', {
    node_id: NODE,
    cpu_count: 4,
    memory_mb: 7_750,
    kernel: '6.12.48+deb13-amd64',
    docker_version: '28.5.1',
    agent_version: '0.1.0',
    bridge_netfilter: true,
    runtime: null,
    ingress: null,
  }),
  certificate_authorized: event('certificate_authorized', {
    certificate_id: SERIAL,
    node_id: NODE,
    purpose: 'agent',
    cause: 'enrollment',
    secret_sha256: SECRET,
    secret_expires_at: START + 15 * MINUTE,
    public_key_spki: PUBLIC_KEY,
    tbs_sha256: digest('7b5'),
    issuer_ca_sha256: CA,
    not_before: START,
    not_after: START + CERTIFICATE_LIFETIME_MS,
    replaces_id: null,
  }),
  certificate_issued: event('certificate_issued', {
    certificate_id: SERIAL,
    node_id: NODE,
    fingerprint: FINGERPRINT,
    certificate_pem: pem('MIIBfirst'),
  }),
  certificate_first_used: event('certificate_first_used', {
    certificate_id: SERIAL,
    node_id: NODE,
    fingerprint: FINGERPRINT,
  }),
  certificates_revoked: event('certificates_revoked', {
    node_id: NODE,
    certificate_ids: [SERIAL],
    reason: 'operator',
  }),
  certificate_conflict_seen: event('certificate_conflict_seen', {
    node_id: NODE,
    certificate_id: SERIAL,
    boot_ids: ['80000000-0000-4000-8000-000000000001', '80000000-0000-4000-8000-000000000002'],
    addresses: ['203.0.113.7', '203.0.113.8'],
  }),
  ca_initialized: event('ca_initialized', {
    ca_sha256: CA,
    ca_pem: pem('MIIBold'),
    not_after: START + 3_650 * CERTIFICATE_LIFETIME_MS,
  }),
  ca_rotation_begun: event('ca_rotation_begun', {
    rotation_id: ROTATION,
    previous_ca_sha256: CA,
    ca_sha256: NEW_CA,
    ca_pem: pem('MIIBnew'),
    not_after: START + 7_300 * CERTIFICATE_LIFETIME_MS,
  }),
  ca_issuer_switched: event('ca_issuer_switched', {
    rotation_id: ROTATION,
    ca_sha256: NEW_CA,
    gateways: ['gateway@fsn1:4711'],
  }),
  ca_rotation_completed: event('ca_rotation_completed', {
    rotation_id: ROTATION,
    previous_ca_sha256: CA,
    ca_sha256: NEW_CA,
    revoked_certificate_ids: [SERIAL],
  }),
  ca_rotation_aborted: event('ca_rotation_aborted', {
    rotation_id: ROTATION,
    ca_sha256: NEW_CA,
    restored_ca_sha256: CA,
  }),
  ca_rotation_refused: event('ca_rotation_refused', {
    rotation_id: ROTATION,
    action: 'complete',
    reason: 'ca_rotation_blocked',
    blocking_node_ids: [NODE],
    blocking_reasons: ['never_renewed'],
    blocking_gateways: [],
  }),
  gateway_certificate_issued: event('gateway_certificate_issued', {
    certificate_id: '0c'.repeat(16),
    fingerprint: digest('f3'),
    issuer_ca_sha256: NEW_CA,
    not_before: START,
    not_after: START + 397 * CERTIFICATE_LIFETIME_MS,
    certificate_pem: pem('MIIBgateway'),
    cause: 'rotation',
  }),
  log_checkpoint_signed: event('log_checkpoint_signed', {
    position: 17,
    hash: digest('ab'),
    key_sha256: digest('6e'),
    signed_at: START,
  }),
  pool_firewall_converged: event('pool_firewall_converged', {
    pool: 'application',
    firewall_id: 99,
    rules_sha256: digest('f12e'),
  }),
  job_queued: event('job_queued', {
    job_id: JOB,
    kind: 'diagnose_host',
    node_id: NODE,
    pool: null,
    org_id: null,
    payload_sha256: digest('b0d1'),
    max_attempts: 3,
  }),
  job_leased: event('job_leased', {
    job_id: JOB,
    node_id: NODE,
    attempt: 1,
    request_id: REQUEST,
    token_sha256: TOKEN,
    expires_at: START + MINUTE,
    reissued: false,
  }),
  job_lease_expired: event('job_lease_expired', { job_id: JOB, node_id: NODE, attempt: 1 }),
  job_returned: event('job_returned', { job_id: JOB, node_id: NODE, attempt: 1, attempt_spent: false }),
  job_completed: event('job_completed', {
    job_id: JOB,
    node_id: NODE,
    attempt: 1,
    result_sha256: digest('b0d2'),
  }),
  job_failed: event('job_failed', {
    job_id: JOB,
    node_id: NODE,
    attempt: 1,
    reason: 'agent_reported',
    result_sha256: digest('b0d2'),
  }),
};

/** The sample of a type with some of its data changed. */
export function make<T extends EventType>(type: T, changes: Partial<EventData<T>> = {}): EventOf<T> {
  const { data }: EventOf<T> = sample[type];
  return event(type, { ...data, ...changes });
}

function event<T extends EventType>(type: T, data: EventData<T>): EventOf<T> {
  return { type, data };
}

/** The events up to a server that runs and has not enrolled. */
export const provisioned: readonly FleetEvent[] = [
  sample.node_provisioning_requested,
  sample.node_capacity_recorded,
  sample.node_enrollment_secret_armed,
  sample.node_server_requested,
  sample.node_server_running,
];

/** The events up to an active node with a certificate that was issued and not used yet. */
export const enrolled: readonly FleetEvent[] = [
  ...provisioned,
  sample.certificate_authorized,
  sample.certificate_issued,
  sample.node_enrolled,
];

/** The events up to a node that takes its pool's work. */
export const admitted: readonly FleetEvent[] = [...enrolled, sample.node_admitted];

/** The events up to a rotation that has begun: the new CA is trusted, the old one issues. */
export const begun: readonly FleetEvent[] = [sample.ca_initialized, sample.ca_rotation_begun];

/** The events up to a rotation in which the new CA issues. */
export const issuing: readonly FleetEvent[] = [...begun, sample.ca_issuer_switched];

/** The first certificate was renewed by the new CA: authorised and issued, not used. */
export const renewed: readonly FleetEvent[] = [
  make('certificate_authorized', {
    certificate_id: SECOND_SERIAL,
    cause: 'renewal',
    secret_sha256: null,
    secret_expires_at: null,
    public_key_spki: OTHER_PUBLIC_KEY,
    tbs_sha256: digest('7b6'),
    issuer_ca_sha256: NEW_CA,
    replaces_id: SERIAL,
  }),
  make('certificate_issued', {
    certificate_id: SECOND_SERIAL,
    fingerprint: SECOND_FINGERPRINT,
    certificate_pem: pem('MIIBsecond'),
  }),
];

/** The renewed one was used, and the first one is revoked. */
export const moved: readonly FleetEvent[] = [
  ...renewed,
  make('certificate_first_used', { certificate_id: SECOND_SERIAL, fingerprint: SECOND_FINGERPRINT }),
  make('certificates_revoked', { reason: 'superseded' }),
];

/** The same history for {@link OTHER_NODE}, which differs in everything that has to be unique. */
export function forOtherNode(events: readonly FleetEvent[]): FleetEvent[] {
  const other = {
    node_id: OTHER_NODE,
    name: 'app-fsn1-b9b9',
    server_id: 5811,
    certificate_id: SECOND_SERIAL,
    fingerprint: SECOND_FINGERPRINT,
    secret_sha256: SECOND_SECRET,
    public_key_spki: OTHER_PUBLIC_KEY,
    certificate_pem: pem('MIIBother'),
  };
  const shared = (data: object) => Object.entries(other).filter(([name]) => Object.hasOwn(data, name));
  return events.map(
    ({ type, data }) => ({ type, data: { ...data, ...Object.fromEntries(shared(data)) } }) as FleetEvent,
  );
}
