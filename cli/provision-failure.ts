import type { ProvisionOutcome, ProvisionRefusal, ProvisionRefusalCode } from '../src/provisioning/outcome.ts';
import { EXIT, type FailureCode, refusalExitCodes } from './exit-code.ts';
import { Failure } from './failure.ts';

const { refused, usage, unavailable } = EXIT;

/** The exit code of each reason for which provisioning stops; total over them, as {@link refusalExitCodes} is over the rules'. */
const provisionExitCodes = {
  ...refusalExitCodes,
  name_invalid: usage,
  user_data_invalid: usage,
  ca_file_unusable: usage,
  cidr_invalid: usage,
  cidrs_missing: usage,
  cidrs_too_many: usage,
  ssh_key_missing: usage,
  ssh_key_unknown: refused,
  server_type_gone: refused,
  server_type_deprecated: refused,
  server_type_not_in_location: refused,
  server_type_unavailable: refused,
  server_type_too_small: refused,
  location_unknown: refused,
  image_unknown: refused,
  image_architecture_mismatch: refused,
  image_deprecated: refused,
  placement_group_unknown: refused,
  placement_group_full: refused,
  firewall_name_taken: refused,
  server_name_taken: refused,
  server_duplicated: refused,
  server_not_ours: refused,
  server_protected: refused,
  quota_exceeded: refused,
  placement_impossible: refused,
  server_create_refused: refused,
  node_locked: refused,
  interrupted: refused,
  provisioning_failed: refused,
  firewall_not_applied: unavailable,
  server_being_deleted: unavailable,
  server_vanished: unavailable,
  server_create_unresolved: unavailable,
  server_create_failed: unavailable,
  server_start_failed: unavailable,
  server_not_running_in_time: unavailable,
  server_delete_failed: unavailable,
  provider_failed: unavailable,
  lock_lost: unavailable,
} as const satisfies Record<ProvisionRefusalCode, FailureCode>;

/** Refusals of provisioning as the end of a command: the first one's code, everybody's reason, and the events that were appended. */
export function provisionFailure(
  refusals: readonly ProvisionRefusal[],
  { nodeId, events }: Pick<ProvisionOutcome, 'nodeId' | 'events'> = { nodeId: null, events: [] },
): Failure {
  const [first] = refusals;
  if (first === undefined) return new Failure(unavailable, 'fault', 'provisioning stopped without a reason');
  return new Failure(provisionExitCodes[first.code], first.code, refusals.map(({ message }) => message).join('; '), {
    remedy: refusals.find(({ remedy }) => remedy !== null)?.remedy ?? undefined,
    details: {
      node_id: nodeId,
      refusals: refusals.map(({ code }) => code),
      events: events.map(({ position, type }) => `${type} at ${position}`),
    },
  });
}
