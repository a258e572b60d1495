import type { ProvisionState } from '../domain/node/state.ts';
import { describeRefusal, type RefusalCode } from '../domain/refusal.ts';
import type { Refusal } from '../domain/result.ts';
import type { HetznerRefusal, HetznerRefusalCode } from '../hetzner/refusal.ts';
import type { AppendedEvent } from '../transactor/command.ts';

/** Every reason for which provisioning stops: a rule's, the provider's, or one of the workflow's own. Closed. */
export type ProvisionRefusalCode =
  | RefusalCode
  | HetznerRefusalCode
  | 'name_invalid'
  | 'user_data_invalid'
  | 'ca_file_unusable'
  | 'node_locked'
  | 'lock_lost'
  | 'interrupted'
  | 'provider_failed'
  | 'provisioning_failed';

/** An expected "no": the code for programs, the message and what to do next for the operator. */
export interface ProvisionRefusal {
  readonly code: ProvisionRefusalCode;
  readonly message: string;
  readonly remedy: string | null;
}

/** What a step gives: a value, or every reason that stands against it. */
export type StepResult<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusals: readonly ProvisionRefusal[] };

/** How a run ended. `events` are those that it appended, in order, also when it was refused in the end. */
export type ProvisionOutcome =
  | {
      readonly ok: true;
      readonly nodeId: string;
      readonly name: string;
      readonly state: ProvisionState;
      readonly events: readonly AppendedEvent[];
    }
  | {
      readonly ok: false;
      /** Null when there is no node yet: nothing was appended. */
      readonly nodeId: string | null;
      readonly refusals: readonly ProvisionRefusal[];
      readonly events: readonly AppendedEvent[];
    };

/** Wraps a step's value. */
export function done<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** Stops a step for one reason. */
export function stop(
  code: ProvisionRefusalCode,
  message: string,
  remedy: string | null = null,
): { readonly ok: false; readonly refusals: readonly ProvisionRefusal[] } {
  return { ok: false, refusals: [{ code, message, remedy }] };
}

/** A rule's refusal as the end of a step. */
export function stopForRule(refusal: Refusal): { readonly ok: false; readonly refusals: readonly ProvisionRefusal[] } {
  const { message, remedy } = describeRefusal(refusal);
  return stop(refusal.code, message, remedy);
}

/** The provider's refusals as the end of a step; their messages say what is the matter, `remedy` what helps beyond that. */
export function stopForProvider(
  refusals: readonly HetznerRefusal[],
  remedy: string | null = null,
): { readonly ok: false; readonly refusals: readonly ProvisionRefusal[] } {
  return { ok: false, refusals: refusals.map(({ code, message }) => ({ code, message, remedy })) };
}

/** What to do with a node whose provisioning failed. */
export function retryRemedy(name: string): string {
  return `\`pushleft-controller fleet provision --retry ${name}\` deletes its server, if it has one, and begins again`;
}
