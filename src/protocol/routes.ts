/** Paths of the agent and the enrolment listener; DESIGN §4. */
export const ENROLL_PATH = '/v1/enroll';
export const LEASE_PATH = '/v1/agent/lease';
export const IDENTITY_PATH = '/v1/agent/identity';
export const RENEW_PATH = '/v1/agent/certificate/renew';
export const HEALTH_PATH = '/healthz';

/** Path of a job's heartbeat. With `':id'` it is the pattern that a router takes. */
export const heartbeatPath = (jobId: string): string => `/v1/agent/jobs/${jobId}/heartbeat`;
/** Path of a job's completion. With `':id'` it is the pattern that a router takes. */
export const completePath = (jobId: string): string => `/v1/agent/jobs/${jobId}/complete`;
/** Path of a build's source. With `':id'` it is the pattern that a router takes. */
export const sourcePath = (jobId: string): string => `/v1/agent/jobs/${jobId}/source`;

/** Where a download says that its lease is held: in a header, because it has no body. */
export const LEASE_TOKEN_HEADER = 'x-pushleft-lease-token';
