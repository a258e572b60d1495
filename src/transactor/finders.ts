import { finder } from './find.ts';

/** A node may have at most this many certificates looked at together; more is a defect of renewal, not of a reader. */
const MANY = 1000;

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
