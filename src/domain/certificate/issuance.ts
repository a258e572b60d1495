import type { CaState } from '../ca/state.ts';
import { type Decision, type DecisionTime, refuse } from '../decision.ts';

/** How far clocks (database, log, gateway) may be apart while certificates are issued. */
export const MAX_CLOCK_SKEW_MS = 60_000;

/**
 * When certificates are issued again although the log's time is ahead of the clock (it was written while that clock was fast, and never
 * goes back): undefined when they are issued now. Both times in ms.
 */
export function issuanceHeldUntil({ at, now }: DecisionTime): number | undefined {
  return at - now > MAX_CLOCK_SKEW_MS ? at - MAX_CLOCK_SKEW_MS : undefined;
}

/** The refusal `clock_unsafe` where log, database and gateway do not agree on the time; undefined where they do. */
export function refuseUnsafeClock(
  { not_before }: { readonly not_before: number },
  time: DecisionTime,
): Decision | undefined {
  const heldUntil = issuanceHeldUntil(time);
  if (heldUntil !== undefined) {
    const until = new Date(heldUntil).toISOString();
    return refuse('clock_unsafe', { clock: 'log', skew_ms: time.at - time.now, until });
  }
  const skewMs = not_before - time.now;
  if (Math.abs(skewMs) <= MAX_CLOCK_SKEW_MS) return undefined;
  return refuse('clock_unsafe', { clock: 'gateway', skew_ms: skewMs, until: 'it is set' });
}

/**
 * The refusal `issuer_not_current`, with the CA that may issue, for any other one: a gateway that has not read its files again cannot issue
 * from a CA that was aborted or replaced. A log that was never told its CA accepts the one of the gateway.
 */
export function refuseIssuer(
  { issuer_ca_sha256 }: { readonly issuer_ca_sha256: string },
  ca: CaState | undefined,
): Decision | undefined {
  if (ca === undefined || ca.issuing_ca_sha256 === issuer_ca_sha256) return undefined;
  return refuse('issuer_not_current', { issuer_ca_sha256: ca.issuing_ca_sha256 });
}
