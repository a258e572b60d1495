import type { RefusalCode } from '../src/domain/refusal.ts';

/** What the process ends with: done, refused by a rule, used or configured wrongly, or the other side (database, provider) failed. */
export const EXIT = { done: 0, refused: 1, usage: 2, unavailable: 3 } as const;

/** One of {@link EXIT}'s failures. */
export type FailureCode = 1 | 2 | 3;

const { refused, unavailable } = EXIT;

/** The exit code of each refusal; total, so that a new code does not compile until someone has thought about it here. */
export const refusalExitCodes = {
  node_unknown: refused,
  node_ambiguous: refused,
  node_name_taken: refused,
  node_exists: refused,
  node_not_provisioning: refused,
  node_not_failed: refused,
  node_not_active: refused,
  node_silent: refused,
  capacity_unknown: refused,
  enrollment_refused: refused,
  certificate_unknown: refused,
  certificate_expired: refused,
  clock_unsafe: unavailable,
  certificate_mismatch: refused,
  job_unknown: refused,
  job_target_unclear: refused,
  job_exists: refused,
  lease_conflict: refused,
  node_not_enrolled: refused,
  node_retired: refused,
  certificate_not_found: refused,
  certificate_ambiguous: refused,
  renewal_not_due: refused,
  renewal_too_often: refused,
  issuer_not_current: refused,
  ca_not_initialized: refused,
  ca_already_initialized: refused,
  ca_rotation_running: refused,
  ca_rotation_unknown: refused,
  ca_no_rotation: refused,
  ca_files_differ: refused,
  ca_used_before: refused,
  ca_not_trusted_everywhere: refused,
  ca_rotation_not_issuing: refused,
  ca_rotation_blocked: refused,
  ca_rotation_too_large: refused,
  ca_has_issued: refused,
} as const satisfies Record<RefusalCode, FailureCode>;
