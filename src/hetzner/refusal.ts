/** Every reason for which provisioning refuses to go on at the provider. Closed: the workflow maps each to an outcome. */
export type HetznerRefusalCode =
  | 'server_type_gone'
  | 'server_type_deprecated'
  | 'server_type_not_in_location'
  | 'server_type_unavailable'
  | 'server_type_too_small'
  | 'location_unknown'
  | 'image_unknown'
  | 'image_architecture_mismatch'
  | 'image_deprecated'
  | 'ssh_key_missing'
  | 'ssh_key_unknown'
  | 'placement_group_unknown'
  | 'placement_group_full'
  | 'cidr_invalid'
  | 'cidrs_missing'
  | 'cidrs_too_many'
  | 'firewall_name_taken'
  | 'firewall_not_applied'
  | 'server_name_taken'
  | 'server_duplicated'
  | 'server_being_deleted'
  | 'server_vanished'
  | 'server_create_unresolved'
  | 'server_create_refused'
  | 'server_create_failed'
  | 'server_start_failed'
  | 'server_not_running_in_time'
  | 'server_not_ours'
  | 'server_protected'
  | 'server_delete_failed'
  | 'quota_exceeded'
  | 'placement_impossible';

/** An expected "no" of the provider's side: the code for programs, the message (with names and what to do) for the operator. */
export interface HetznerRefusal {
  readonly code: HetznerRefusalCode;
  readonly message: string;
}

/** A value, or the refusal in its place. */
export type HetznerResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: HetznerRefusal };

/** Wraps a value. */
export function accepted<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** Wraps a refusal. */
export function refused(
  code: HetznerRefusalCode,
  message: string,
): { readonly ok: false; readonly refusal: HetznerRefusal } {
  return { ok: false, refusal: { code, message } };
}
