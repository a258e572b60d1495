import { clockWatch } from './clock-watch.ts';
import type { GatewayClient } from './gateway-client.ts';
import type { GatewayConnection } from './gateway-connection.ts';
import { describeError, type Log } from './log.ts';
import { renewalPointMs } from './renewal-point.ts';
import type { Time } from './time.ts';

type Known = Extract<Awaited<ReturnType<GatewayClient['askIdentity']>>, { kind: 'known' }>;

/** The first check comes within this time, or within the distance of two checks where that is less. */
const FIRST_CHECK_MAX_MS = 60_000;
/** After a check that came to nothing the next one comes within this time, for the same reason. */
const RETRY_MAX_MS = 60_000;

/** What the loop needs. */
export interface RenewalLoopDependencies {
  readonly connection: {
    readonly client: Pick<GatewayClient, 'askIdentity'>;
    readonly adoptStaged: GatewayConnection['adoptStaged'];
    readonly renew: GatewayConnection['renew'];
  };
  readonly time: Time;
  readonly log: Log;
  /** Distance of two checks, before jitter. */
  readonly checkEveryMs: number;
}

/** Why the loop ended: it was told to, or an identity is staged that the gateway does not take, and the agent is to start anew. */
export type RenewalLoopEnd = { readonly kind: 'stopped' } | { readonly kind: 'check_failed'; readonly reason: string };

/**
 * Looks after the certificate until `stopping` is aborted: notices an identity that another command has staged, asks the gateway whether a
 * renewal is due, and renews: at once for the issuer's sake, for the lifetime's at the certificate's own point. The gateway's clock
 * decides throughout. Distances are jittered, so that a fleet that started together does not ask together.
 */
export async function runRenewalLoop(deps: RenewalLoopDependencies, stopping: AbortSignal): Promise<RenewalLoopEnd> {
  const { time, checkEveryMs } = deps;
  const check = renewalCheck(deps, stopping);
  let pauseMs = time.random() * Math.min(checkEveryMs, FIRST_CHECK_MAX_MS);
  for (;;) {
    await time.pause(pauseMs, stopping);
    if (stopping.aborted) return { kind: 'stopped' };
    const next = await check();
    if (next.kind === 'check_failed') return next;
    pauseMs = next.pauseMs;
  }
}

type Next =
  | { readonly kind: 'pause'; readonly pauseMs: number }
  | Extract<RenewalLoopEnd, { readonly kind: 'check_failed' }>;

/** One check after the other; each answers when the next one is due. Throws for nothing that disk, network or gateway do. */
function renewalCheck({ connection, time, log, checkEveryMs }: RenewalLoopDependencies, stopping: AbortSignal) {
  const watchClock = clockWatch(log, time);
  const regular = (): Next => pauseOf(checkEveryMs * (0.8 + time.random() * 0.4));
  const soon = (retryAfterMs = 0): Next =>
    pauseOf(retryAfterMs + Math.min(checkEveryMs, RETRY_MAX_MS) * (0.5 + time.random() / 2));

  async function check(): Promise<Next> {
    const adopted = await connection.adoptStaged(stopping);
    if (adopted.kind === 'check_failed') return adopted;
    const answer = await connection.client.askIdentity(stopping);
    // The lease loop says what is wrong, once; it asks far more often.
    if (answer.kind !== 'known') return soon();
    watchClock(answer.time);
    const untilMs = untilRenewalMs(answer, time.wallMs());
    if (answer.identity.renewal?.due === true && untilMs <= 0) return renewNow(answer);
    const next = regular();
    return next.kind === 'pause' && untilMs > 0 ? pauseOf(Math.min(next.pauseMs, untilMs)) : next;
  }

  async function renewNow({ identity: { renewal } }: Known): Promise<Next> {
    const outcome = await connection.renew(stopping);
    switch (outcome.kind) {
      case 'check_failed':
        return outcome;
      case 'swapped':
        log.info({ reason: renewal?.reason }, 'certificate renewed');
        return regular();
      case 'unchanged':
      case 'not_due':
        return regular();
      case 'refused':
        log.error({ reason: outcome.reason }, 'renewal refused');
        return regular();
      case 'unanswered':
        if (!stopping.aborted) log.warn({ reason: outcome.reason }, 'renewal not answered, trying again');
        return soon(outcome.retryAfterMs);
    }
  }

  return async (): Promise<Next> => {
    try {
      return await check();
    } catch (error) {
      log.error({ reason: describeError(error) }, 'renewal check failed, trying again');
      return soon();
    }
  };
}

function pauseOf(pauseMs: number): Next {
  return { kind: 'pause', pauseMs };
}

/** How long until the certificate is to be renewed: now for the issuer's sake, else at its own point by the gateway's clock. */
function untilRenewalMs({ identity: { certificate, renewal }, time }: Known, wallMs: number): number {
  if (renewal?.reason === 'issuer') return 0;
  const pointMs = renewalPointMs({
    notBeforeMs: Date.parse(certificate.not_before),
    notAfterMs: Date.parse(certificate.not_after),
    fingerprintSha256: certificate.fingerprint_sha256,
  });
  return pointMs - (time.serverTimeMs ?? wallMs);
}
