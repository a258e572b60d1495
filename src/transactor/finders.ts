import { finder } from './find.ts';

/** A node may have at most this many certificates looked at together; more is a defect of renewal, not of a reader. */
const MANY = 1000;

/** Far more rows than a fleet of this design has; a rotation of the CA looks at all of them. */
const WHOLE_FLEET = 100_000;

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
  limit: MANY,
});

/** The certificates of a node that are not revoked: few, because the first use of one revokes those before it. */
export const certificatesInForce = finder('fleet_node_certificates', {
  name: 'certificates_in_force',
  where: { node_id: { argument: 'node_id' }, revoked_at: { is: null } },
  orderBy: 'certificate_id',
  limit: MANY,
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
