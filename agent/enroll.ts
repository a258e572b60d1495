import type { KeyObject } from 'node:crypto';
import * as v from 'valibot';
import { EnrollResponse } from '../src/protocol/enroll.ts';
import { EnrollmentSecret } from '../src/protocol/identifiers.ts';
import { ENROLL_PATH } from '../src/protocol/routes.ts';
import { backoffMs } from './backoff.ts';
import { checkCertificate, commonName } from './certificate-check.ts';
import { createCsr } from './csr.ts';
import type { Answer, HttpsJson } from './https-json.ts';
import { type EnrollAnswer, enrollmentBy, type IdentityStore } from './identity-store.ts';
import type { Log } from './log.ts';
import type { Time } from './time.ts';

/** What an enrolment needs. */
export interface EnrollDependencies {
  readonly nodeId: string;
  readonly store: IdentityStore;
  /** Speaks with the enrolment listener, verified by the bootstrap CA. */
  readonly listener: HttpsJson;
  readonly time: Time;
  readonly log: Log;
  /** How long to go on asking a listener that cannot be reached, or asks for patience. */
  readonly waitMs: number;
  /** Enrol anew although an identity is staged. */
  readonly replace: boolean;
  readonly stopping: AbortSignal;
}

/** How an enrolment ended. `refused` is final for this secret; `unreachable` may be tried again. */
export type EnrollOutcome =
  | { readonly kind: 'enrolled'; readonly notAfter: Date }
  | { readonly kind: 'already_enrolled'; readonly notAfter: Date }
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'unreachable'; readonly reason: string };

/**
 * Makes the host its node: key, certificate request, certificate, staged and switched.
 * Does nothing but tidy up when an unexpired identity is staged. May be killed anywhere and run again, also twice at once:
 * the same secret keeps the same key, which the gateway answers with the same certificate.
 */
export async function enroll(deps: EnrollDependencies): Promise<EnrollOutcome> {
  if (deps.replace) return enrollAnew(deps);
  const standing = await standingIdentity(deps);
  if (standing !== undefined) return standing;
  try {
    const outcome = await enrollAnew(deps);
    if (outcome.kind === 'enrolled') return outcome;
    return (await standingIdentity(deps)) ?? outcome;
  } catch (error) {
    // Another run of the same host may have been faster, and have tidied this one's files away.
    const meanwhile = await standingIdentity(deps);
    if (meanwhile !== undefined) return meanwhile;
    throw error;
  }
}

/** The outcome when an identity is staged that settles the matter, after tidying up behind it; else undefined. */
async function standingIdentity({ store, nodeId }: EnrollDependencies): Promise<EnrollOutcome | undefined> {
  const current = await store.current();
  if (current === undefined) return undefined;
  if (commonName(current.certificate) !== nodeId) {
    return { kind: 'refused', reason: "another node's identity is staged; --replace enrols anew" };
  }
  const notAfter = current.certificate.validToDate;
  if (notAfter.getTime() > Date.now()) {
    // A renewal's generations stay: one may wait for its certificate, another one be kept until its follower has leased.
    await store.discardSecret();
    return { kind: 'already_enrolled', notAfter };
  }
  if ((await store.secret()) !== undefined) return undefined;
  const expired = `the staged certificate expired at ${notAfter.toISOString()}, or the clock is ahead`;
  return { kind: 'refused', reason: `${expired}; there is no enrolment secret to enrol anew with` };
}

async function enrollAnew(deps: EnrollDependencies): Promise<EnrollOutcome> {
  const { store, nodeId } = deps;
  const secret = await store.secret();
  if (secret === undefined) return { kind: 'refused', reason: 'there is no enrolment secret in the state directory' };
  if (!v.is(EnrollmentSecret, secret)) {
    return { kind: 'refused', reason: 'the enrolment secret is not 64 lower-case hex digits' };
  }
  const pending = await store.pendingKey(enrollmentBy(secret));
  const asked = pending.answer ?? (await askUntilAnswered(deps, secret, pending.key));
  if ('kind' in asked) return asked;
  const check = checkCertificate(nodeId, pending.key, asked.certificatePem, asked.caPem);
  if (!check.ok) return { kind: 'refused', reason: `the certificate in the answer is refused: ${check.problem}` };
  await store.activate(pending.generation, asked.certificatePem, asked.caPem);
  await store.discardSecret();
  await store.discardOthers();
  return { kind: 'enrolled', notAfter: check.certificate.validToDate };
}

type Asked = EnrollAnswer | Extract<EnrollOutcome, { kind: 'refused' | 'unreachable' }>;

/** Asks with jittered back-off until the listener grants, refuses for good, or the time is over. */
async function askUntilAnswered(deps: EnrollDependencies, secret: string, key: KeyObject): Promise<Asked> {
  const { time, log, stopping } = deps;
  const body = { node_id: deps.nodeId, enrollment_secret: secret, csr_pem: createCsr(deps.nodeId, key) };
  const deadlineMs = time.nowMs() + deps.waitMs;
  for (let failures = 1; ; failures++) {
    const answer = await deps.listener.exchange({
      method: 'POST',
      path: ENROLL_PATH,
      body,
      expect: EnrollResponse,
      signal: stopping,
    });
    const verdict = judge(answer);
    if (!('kind' in verdict) || verdict.kind !== 'later') return verdict;
    const pauseMs = Math.max(backoffMs(failures, time), verdict.retryAfterMs);
    if (stopping.aborted || time.nowMs() + pauseMs > deadlineMs) return { kind: 'unreachable', reason: verdict.reason };
    log.warn({ reason: verdict.reason, retry_in_ms: Math.round(pauseMs) }, 'enrolment not answered, trying again');
    await time.pause(pauseMs, stopping);
  }
}

type Verdict = Asked | { readonly kind: 'later'; readonly reason: string; readonly retryAfterMs: number };

function judge(answer: Answer<EnrollResponse>): Verdict {
  switch (answer.kind) {
    case 'ok':
      return { certificatePem: answer.body.certificate_pem, caPem: answer.body.ca_pem };
    case 'aborted':
      return { kind: 'unreachable', reason: 'stopped before the gateway answered' };
    case 'unreachable':
      return { kind: 'later', reason: answer.reason, retryAfterMs: 0 };
    case 'refused': {
      const { status, code, message, retryAfterMs } = answer.refusal;
      const reason = `the gateway answered ${status} ${code ?? ''}`.trimEnd();
      if (status === 429 || status >= 500) return { kind: 'later', reason, retryAfterMs: retryAfterMs ?? 0 };
      if (status === 401) {
        return {
          kind: 'refused',
          reason: `${reason}: this node awaits no enrolment, or the secret is wrong, expired or used`,
        };
      }
      return { kind: 'refused', reason: `${reason}: ${message}` };
    }
  }
}
