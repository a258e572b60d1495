import { refuseStepOfHostCommand } from '../commands/ca.ts';
import { HOST_REFUSALS } from '../domain/ca/events.ts';
import type { StepOfHost } from '../domain/ca/refuse.ts';
import type { RefusalCode } from '../domain/refusal.ts';
import type { Refusal } from '../domain/result.ts';
import type { RotationPorts } from './ports.ts';

/** How a phase ended: done (perhaps there was nothing to do), or refused by a decision or by what this host lacks. */
export type RotationOutcome =
  | { readonly kind: 'done'; readonly changed: boolean }
  | { readonly kind: 'refused'; readonly refusal: Refusal };

/** A phase that ended well. */
export const done = (changed: boolean): RotationOutcome => ({ kind: 'done', changed });

/** A phase that cannot go on. */
export const refused = (code: RefusalCode, details: Refusal['details'] = {}): RotationOutcome => ({
  kind: 'refused',
  refusal: { code, details },
});

/** An attempt that ended before its decision: what was refused because of this host's files is put on record as well. */
export async function onRecord(
  { execute }: RotationPorts,
  action: StepOfHost['action'],
  outcome: RotationOutcome,
): Promise<RotationOutcome> {
  if (outcome.kind === 'done') return outcome;
  const { code, details } = outcome.refusal;
  const reason = HOST_REFUSALS.find((known) => known === code);
  if (reason !== undefined) await execute(refuseStepOfHostCommand, { action, reason, details });
  return outcome;
}
