import type { Refusal } from '../domain/result.ts';

/** Why a rotation stops on this host although no decision refused it. */
export type RotationProblem =
  | { readonly code: 'ca_key_missing'; readonly message: string }
  | { readonly code: 'gateway_certificate_unreadable'; readonly message: string }
  | { readonly code: 'ca_missing'; readonly message: string };

/** How a phase ended: done (perhaps there was nothing to do), refused by a decision, or stopped. */
export type RotationOutcome =
  | { readonly kind: 'done'; readonly changed: boolean }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  | { readonly kind: 'stopped'; readonly problem: RotationProblem };

/** A phase that ended well. */
export const done = (changed: boolean): RotationOutcome => ({ kind: 'done', changed });

/** A phase that cannot go on. */
export const stopped = (code: RotationProblem['code'], message: string): RotationOutcome => ({
  kind: 'stopped',
  problem: { code, message },
});
