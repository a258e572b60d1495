import { finder } from './find.ts';

/**
 * Far more rows than a fleet of this design has, or one thing ever had. Reaching a limit is an error (FinderLimitError): a limit is never
 * what decides which rows are looked at.
 */
const WHOLE_FLEET = 100_000;

/** What the events of one command can revoke. Renewal keeps a node's certificates in force to a few (MOST_UNUSED). */
const MOST_IN_FORCE = 20_000;

/** Nodes of a name: one at most. */
export const nodeByName = finder('fleet_nodes', {
  name: 'node_by_name',
  where: { name: { argument: 'name' } },
  orderBy: 'node_id',
  limit: 1,
});

/** The certificate of a fingerprint. */
export const certificateByFingerprint = finder('fleet_node_certificates', {
  name: 'certificate_by_fingerprint',
  where: { fingerprint: { argument: 'fingerprint' } },
  orderBy: 'certificate_id',
  limit: 1,
});

/** All certificates of a node. */
export const certificatesOfNode = finder('fleet_node_certificates', {
  name: 'certificates_of_node',
  where: { node_id: { argument: 'node_id' } },
  orderBy: 'certificate_id',
  limit: WHOLE_FLEET,
});

/** The certificates of a node that are not revoked: few, because the first use of one revokes those before it. */
export const certificatesInForce = finder('fleet_node_certificates', {
  name: 'certificates_in_force',
  where: { node_id: { argument: 'node_id' }, revoked_at: { is: null } },
  orderBy: 'certificate_id',
  limit: MOST_IN_FORCE,
});

/** The certificate that an enrolment secret was used up for. */
export const certificateBySecret = finder('fleet_node_certificates', {
  name: 'certificate_by_secret',
  where: { secret_sha256: { argument: 'secret_sha256' } },
  orderBy: 'certificate_id',
  limit: 1,
});

/** Whether a CA has issued anything. */
export const certificateByIssuer = finder('fleet_node_certificates', {
  name: 'certificate_by_issuer',
  where: { issuer_ca_sha256: { argument: 'issuer_ca_sha256' } },
  orderBy: 'certificate_id',
  limit: 1,
});

/** Every certificate of the fleet that is not revoked. */
export const allCertificatesInForce = finder('fleet_node_certificates', {
  name: 'all_certificates_in_force',
  where: { revoked_at: { is: null } },
  orderBy: 'certificate_id',
  limit: WHOLE_FLEET,
});

/** Every node in one of these statuses. */
export const nodesInStatus = finder('fleet_nodes', {
  name: 'nodes_in_status',
  where: { status: { anyOf: 'statuses' } },
  orderBy: 'node_id',
  limit: WHOLE_FLEET,
});

/** The rotation to a CA: one at most. */
export const rotationByCa = finder('ca_rotations', {
  name: 'rotation_by_ca',
  where: { ca_sha256: { argument: 'ca_sha256' } },
  orderBy: 'rotation_id',
  limit: 1,
});

/** A rotation away from a CA: the only trace of the fleet's first one after it. */
export const rotationFromCa = finder('ca_rotations', {
  name: 'rotation_from_ca',
  where: { previous_ca_sha256: { argument: 'ca_sha256' } },
  orderBy: 'rotation_id',
  limit: 1,
});

/** Gateways that have said something of themselves, alive or not. */
export const gateways = finder('gateway_beacons', {
  name: 'gateways',
  where: { kind: { is: 'gateway' } },
  orderBy: 'program',
  limit: WHOLE_FLEET,
});

/** The job that a lease request was given. */
export const jobByLeaseRequest = finder('jobs', {
  name: 'job_by_lease_request',
  where: { lease_request_id: { argument: 'request_id' } },
  orderBy: 'job_id',
  limit: 1,
});

/** The oldest job that waits for this node and is of a kind that its agent knows. */
export const queuedForNode = finder('jobs', {
  name: 'queued_for_node',
  where: { status: { is: 'queued' }, node_id: { argument: 'node_id' }, kind: { anyOf: 'kinds' } },
  orderBy: 'queued_position',
  limit: 1,
});

/** The oldest job that waits for any node of this pool and is of a kind that its agent knows. */
export const queuedForPool = finder('jobs', {
  name: 'queued_for_pool',
  where: { status: { is: 'queued' }, pool: { argument: 'pool' }, kind: { anyOf: 'kinds' } },
  orderBy: 'queued_position',
  limit: 1,
});

/** More than a node may have of anything. */
const WHOLE_NODE = 3_000;

/** Jobs of a node that are not over: those that are for it. */
export const openJobsOfNode = finder('jobs', {
  name: 'open_jobs_of_node',
  where: { node_id: { argument: 'node_id' }, status: { anyOf: 'statuses' } },
  orderBy: 'job_id',
  limit: WHOLE_NODE,
});

/** Jobs that a node holds now, whoever they were for. */
export const jobsLeasedTo = finder('jobs', {
  name: 'jobs_leased_to',
  where: { leased_to: { argument: 'node_id' }, status: { is: 'leased' } },
  orderBy: 'job_id',
  limit: WHOLE_NODE,
});

/** What is held of a node now. */
export const activeAllocationsOfNode = finder('fleet_allocations', {
  name: 'active_allocations_of_node',
  where: { node_id: { argument: 'node_id' }, released_at: { is: null } },
  orderBy: 'allocation_id',
  limit: WHOLE_NODE,
});

/** Instances on a node, in some statuses. */
export const instancesOfNode = finder('application_instances', {
  name: 'instances_of_node',
  where: { node_id: { argument: 'node_id' }, status: { anyOf: 'statuses' } },
  orderBy: 'instance_id',
  limit: WHOLE_NODE,
});

/** Instances of a deployment, in some statuses. */
export const instancesOfDeployment = finder('application_instances', {
  name: 'instances_of_deployment',
  where: { deployment_id: { argument: 'deployment_id' }, status: { anyOf: 'statuses' } },
  orderBy: 'instance_id',
  limit: WHOLE_FLEET,
});

/** The instance that a job works on. */
export const instanceByJob = finder('application_instances', {
  name: 'instance_by_job',
  where: { job_id: { argument: 'job_id' } },
  orderBy: 'instance_id',
  limit: 1,
});

/** Every deployment in one of these statuses. */
export const deploymentsInStatus = finder('deployments', {
  name: 'deployments_in_status',
  where: { status: { anyOf: 'statuses' } },
  orderBy: 'deployment_id',
  limit: WHOLE_FLEET,
});

/** The instance that serves in a slot of a role: one at most. */
export const readyInSlot = finder('application_instances', {
  name: 'ready_in_slot',
  where: {
    deployment_id: { argument: 'deployment_id' },
    role: { argument: 'role' },
    slot: { argument: 'slot' },
    status: { is: 'ready' },
  },
  orderBy: 'instance_id',
  limit: 1,
});

/** Deployments of a name, over or not. */
export const deploymentsNamed = finder('deployments', {
  name: 'deployments_named',
  where: { name: { argument: 'name' } },
  orderBy: 'created_at',
  limit: WHOLE_FLEET,
});

/** The deployment that a job builds. */
export const deploymentByBuildJob = finder('deployments', {
  name: 'deployment_by_build_job',
  where: { build_job_id: { argument: 'job_id' } },
  orderBy: 'deployment_id',
  limit: 1,
});

/** Routes of a deployment, in some statuses. */
export const routesOfDeployment = finder('ingress_routes', {
  name: 'routes_of_deployment',
  where: { deployment_id: { argument: 'deployment_id' }, status: { anyOf: 'statuses' } },
  orderBy: 'route_id',
  limit: WHOLE_FLEET,
});

/** Routes on an ingress host, in some statuses. */
export const routesOfNode = finder('ingress_routes', {
  name: 'routes_of_node',
  where: { node_id: { argument: 'node_id' }, status: { anyOf: 'statuses' } },
  orderBy: 'route_id',
  limit: WHOLE_NODE,
});

/** All generations of a hostname's route. */
export const routesOfHostname = finder('ingress_routes', {
  name: 'routes_of_hostname',
  where: { hostname: { argument: 'hostname' } },
  orderBy: 'generation',
  limit: WHOLE_FLEET,
});

/** The route that a job works on. */
export const routeByJob = finder('ingress_routes', {
  name: 'route_by_job',
  where: { job_id: { argument: 'job_id' } },
  orderBy: 'route_id',
  limit: 1,
});

/** Databases on a node, in some statuses. */
export const databasesOfNode = finder('database_instances', {
  name: 'databases_of_node',
  where: { node_id: { argument: 'node_id' }, status: { anyOf: 'statuses' } },
  orderBy: 'database_id',
  limit: WHOLE_NODE,
});

/** Databases of a name, in some statuses. */
export const databasesByName = finder('database_instances', {
  name: 'databases_by_name',
  where: { name: { argument: 'name' }, status: { anyOf: 'statuses' } },
  orderBy: 'database_id',
  limit: WHOLE_FLEET,
});

/** Every database in one of these statuses. */
export const databasesInStatus = finder('database_instances', {
  name: 'databases_in_status',
  where: { status: { anyOf: 'statuses' } },
  orderBy: 'database_id',
  limit: WHOLE_FLEET,
});

/** The database that a job works on. */
export const databaseByJob = finder('database_instances', {
  name: 'database_by_job',
  where: { job_id: { argument: 'job_id' } },
  orderBy: 'database_id',
  limit: 1,
});
