import type { EventData, EventOf, EventType } from '../../src/domain/event/catalogue.ts';

const NODE = '10000000-0000-4000-8000-00000000000a';
const event = <T extends EventType>(type: T, data: EventData<T>): EventOf<T> => ({ type, data });

/** The deployment of most tests. */
const DEPLOYMENT = '80000000-0000-4000-8000-000000000001';
/** Its organisation. */
const ORGANISATION = '81000000-0000-4000-8000-000000000001';
/** Its first web instance. */
const INSTANCE = `${DEPLOYMENT}.web.0.1`;
/** The one that replaces it. */
const REPLACEMENT = `${DEPLOYMENT}.web.0.2`;
/** The job that works on it. */
const INSTANCE_JOB = '20000000-0000-4000-8000-000000000011';
/** The job that takes it down. */
const TEARDOWN_JOB = '20000000-0000-4000-8000-000000000012';
/** The job that publishes its hostname. */
const ROUTE_JOB = '20000000-0000-4000-8000-000000000013';
/** The job that takes the hostname away. */
const ROUTE_REMOVAL_JOB = '20000000-0000-4000-8000-000000000014';
/** The job that starts the database. */
const DATABASE_JOB = '20000000-0000-4000-8000-000000000015';
/** The hostname of most tests. */
const HOSTNAME = 'shop.example.com';
/** The database of most tests. */
const DATABASE = '82000000-0000-4000-8000-000000000001';
/** The ingress host of most tests. */
const INGRESS_NODE = '10000000-0000-4000-8000-00000000000c';

const NOW = Date.UTC(2026, 2, 1, 12);
const onNode = { deployment_id: DEPLOYMENT, instance_id: INSTANCE, node_id: NODE };
const route = { deployment_id: DEPLOYMENT, hostname: HOSTNAME, generation: 1, node_id: INGRESS_NODE };

/** What a node that had nothing is said to have had. */
export const NOTHING_RECLAIMED = {
  fenced_jobs: [],
  lost_instance_ids: [],
  unplaced_instance_ids: [],
  replacement_instance_ids: [],
  released_allocation_ids: [],
  stranded_database_ids: [],
};

/** One event of each type that tells of workloads, of drains and of what is taken from nodes. */
export const workloadSamples = {
  node_drain_cancelled: event('node_drain_cancelled', { node_id: NODE }),
  node_drain_overdue: event('node_drain_overdue', { node_id: NODE, blocking_instance_ids: [INSTANCE] }),
  node_taken_offline: event('node_taken_offline', { node_id: NODE }),
  node_revoked: event('node_revoked', { node_id: NODE, ...NOTHING_RECLAIMED }),
  node_cleanup_confirmed: event('node_cleanup_confirmed', { node_id: NODE, instance_ids: [INSTANCE] }),
  node_mesh_coordinator_set: event('node_mesh_coordinator_set', { node_id: NODE, coordinator: true }),
  node_loss_held: event('node_loss_held', { pool: 'application', silent_node_ids: [NODE], pool_size: 1 }),
  node_loss_released: event('node_loss_released', { pool: 'application', cause: 'operator', node_ids: [NODE] }),
  node_losses_frozen: event('node_losses_frozen', { scope: 'fleet' }),
  node_losses_thawed: event('node_losses_thawed', { scope: 'fleet' }),
  job_fenced: event('job_fenced', {
    job_id: '20000000-0000-4000-8000-000000000001',
    node_id: NODE,
    reason: 'node_retired',
  }),
  deployment_created: event('deployment_created', {
    deployment_id: DEPLOYMENT,
    name: 'shop',
    org_id: ORGANISATION,
    pool: 'application',
    regions: ['fsn1'],
    sealed_member_node_ids: null,
    roles: [
      {
        role: 'web',
        run: 'service',
        count: 1,
        cpu_millis: 500,
        memory_mb: 512,
        disk_gb: 1,
        image: 'registry.example.com/shop/web:1.4.2',
        command: ['/usr/local/bin/web', '--quiet'],
        listens: true,
        readiness_path: '/healthz',
        timeout_seconds: 60,
        serves_hostnames: true,
      },
    ],
    hostnames: [HOSTNAME],
    build: null,
    build_job_id: null,
    spec_sha256: '5bec'.repeat(16),
  }),
  deployment_built: event('deployment_built', {
    deployment_id: DEPLOYMENT,
    artifact_sha256: 'a7'.repeat(32),
    artifact_bytes: 4_096,
  }),
  deployment_became_live: event('deployment_became_live', { deployment_id: DEPLOYMENT }),
  deployment_degraded: event('deployment_degraded', { deployment_id: DEPLOYMENT, reason: 'no_eligible_node' }),
  deployment_recovered: event('deployment_recovered', { deployment_id: DEPLOYMENT }),
  deployment_failed: event('deployment_failed', {
    deployment_id: DEPLOYMENT,
    reason: 'build_failed',
    code: 'node_lost',
  }),
  deployment_removal_requested: event('deployment_removal_requested', { deployment_id: DEPLOYMENT }),
  deployment_removed: event('deployment_removed', { deployment_id: DEPLOYMENT }),
  instance_requested: event('instance_requested', {
    deployment_id: DEPLOYMENT,
    instance_id: INSTANCE,
    role: 'web',
    slot: 0,
    generation: 1,
  }),
  instance_replacement_queued: event('instance_replacement_queued', {
    deployment_id: DEPLOYMENT,
    instance_id: REPLACEMENT,
    role: 'web',
    slot: 0,
    generation: 2,
    replaces_instance_id: INSTANCE,
    cause: 'node_lost',
  }),
  instance_placed: event('instance_placed', {
    ...onNode,
    cpu_millis: 500,
    memory_mb: 512,
    disk_gb: 1,
    subnet_slot: 0,
  }),
  instance_unplaced: event('instance_unplaced', { ...onNode, job_id: null, reason: 'node_draining' }),
  network_admitted: event('network_admitted', { ...onNode, heard_at: NOW, job_id: INSTANCE_JOB }),
  instance_ready: event('instance_ready', {
    ...onNode,
    address: '10.0.0.7',
    port: 40_001,
    supersedes_instance_id: null,
  }),
  instance_done: event('instance_done', onNode),
  instance_failed: event('instance_failed', { ...onNode, reason: 'job_failed' }),
  instance_teardown_queued: event('instance_teardown_queued', { ...onNode, job_id: TEARDOWN_JOB, cause: 'migration' }),
  instance_removed: event('instance_removed', onNode),
  ingress_route_published: event('ingress_route_published', {
    ...route,
    job_id: ROUTE_JOB,
    instance_ids: [INSTANCE],
    relocation: false,
    failures: 0,
  }),
  ingress_route_activated: event('ingress_route_activated', route),
  ingress_route_relocated: event('ingress_route_relocated', { ...route, to_generation: 2, to_node_id: INGRESS_NODE }),
  ingress_route_failed: event('ingress_route_failed', { ...route, reason: 'job_failed', failures: 1 }),
  ingress_route_removal_queued: event('ingress_route_removal_queued', { ...route, job_id: ROUTE_REMOVAL_JOB }),
  ingress_route_removed: event('ingress_route_removed', route),
  database_instance_created: event('database_instance_created', {
    database_id: DATABASE,
    node_id: NODE,
    name: 'orders',
    job_id: DATABASE_JOB,
    cpu_millis: 1_000,
    memory_mb: 2_048,
    disk_gb: 20,
    image: 'postgres:18',
    command: ['postgres'],
    timeout_seconds: 120,
  }),
  database_instance_ready: event('database_instance_ready', {
    database_id: DATABASE,
    node_id: NODE,
    address: '10.0.0.8',
    port: 5_432,
  }),
  database_instance_failed: event('database_instance_failed', {
    database_id: DATABASE,
    node_id: NODE,
    reason: 'job_failed',
  }),
  database_instance_stranded: event('database_instance_stranded', { database_id: DATABASE, node_id: NODE }),
  database_instance_released: event('database_instance_released', { database_id: DATABASE, node_id: NODE }),
} as const;
