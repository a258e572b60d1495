/** Sizes and lifetimes that gateway and agent agree on. Sizes of text are UTF-16 code units unless the name says bytes. */

/** Largest request body of the agent and the enrolment listener; DESIGN §4. */
export const BODY_MAX_BYTES = 64 * 1024;
/** Longest time a lease request may wait for a job to be queued. */
export const LEASE_WAIT_MAX_SECONDS = 30;
/** Largest number of kinds in `capabilities.kinds`. */
export const KINDS_MAX = 64;
/** Largest number of fenced instances in one `node_lost` answer; requirement, Lost nodes. */
export const CLEANUP_MAX = 64;
/** Longest certificate request that is looked at. Half of it is too large already (csr_too_large), and is told so. */
export const CSR_PEM_MAX_LENGTH = 16 * 1024;
/** Largest certificate or trust bundle that an agent accepts. */
export const CERTIFICATE_PEM_MAX_LENGTH = 32 * 1024;
/** Longest opaque log head. */
export const LOG_HEAD_MAX_LENGTH = 512;
/** Longest message of an error body. */
export const ERROR_MESSAGE_MAX_LENGTH = 512;
