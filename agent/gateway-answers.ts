import * as v from 'valibot';
import type { GatewayErrorCode } from '../src/protocol/errors.ts';
import type { IdentityResponse } from '../src/protocol/identity.ts';
import { type CleanupTask, LeaseRefusal } from '../src/protocol/lease.ts';
import type { Answer, AnswerTime } from './https-json.ts';

/** A job that this agent holds. `endsAtMs` is when the lease ends by the own monotonic clock, on the safe side. */
export interface Lease {
  readonly id: string;
  readonly kind: string;
  readonly payload: unknown;
  readonly token: string;
  readonly endsAtMs: number;
}

/** An exchange that decided nothing: to be repeated, not before `retryAfterMs` where the gateway said so. */
interface Undecided {
  readonly kind: 'undecided';
  readonly reason: string;
  readonly retryAfterMs: number | null;
}

/** 401: the certificate is not (or no longer) good. */
interface Unauthenticated {
  readonly kind: 'unauthenticated';
  readonly code: GatewayErrorCode | null;
}

/** The caller's own signal ended the exchange; the gateway may have decided all the same. */
interface Aborted {
  readonly kind: 'aborted';
}

/** What a lease request came to. */
export type LeaseAnswer =
  | { readonly kind: 'job'; readonly lease: Lease; readonly logHead: string }
  | { readonly kind: 'idle'; readonly logHead: string }
  | { readonly kind: 'not_active'; readonly status: string }
  | { readonly kind: 'node_lost'; readonly cleanup: readonly CleanupTask[] }
  | Unauthenticated
  | Undecided
  | Aborted;

/** What a heartbeat came to; `conflict` is final for the lease. */
export type HeartbeatAnswer =
  | { readonly kind: 'extended'; readonly endsAtMs: number }
  | { readonly kind: 'conflict' }
  | Unauthenticated
  | Undecided
  | Aborted;

/** What a completion came to. `rejected`: the gateway will never take this body (it is malformed or too large for it). */
export type CompleteAnswer =
  | { readonly kind: 'accepted' }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'rejected'; readonly reason: string }
  | Unauthenticated
  | Undecided
  | Aborted;

/** What a download came to; `damaged` is to be tried again: what came is not what was to come. */
export type SourceAnswer =
  | { readonly kind: 'downloaded' }
  | { readonly kind: 'damaged'; readonly reason: string }
  | { readonly kind: 'conflict' }
  | Unauthenticated
  | Undecided
  | Aborted;

/** Who the gateway takes this agent for, when it said so. */
export type IdentityAnswer =
  | { readonly kind: 'known'; readonly identity: IdentityResponse; readonly time: AnswerTime }
  | Unauthenticated
  | Undecided
  | Aborted;

/** What a renewal came to. `refused` is final for this certificate request. */
export type RenewAnswer =
  | { readonly kind: 'granted'; readonly certificatePem: string; readonly caPem: string }
  | { readonly kind: 'not_due' }
  | { readonly kind: 'refused'; readonly reason: string }
  | Unauthenticated
  | Undecided
  | Aborted;

/** Every answer that is not 200. */
export type NotOk = Exclude<Answer<unknown>, { kind: 'ok' }>;

/** 409 by name; 404 because a job that the gateway does not know cannot be held either. */
export function isConflict(answer: NotOk): boolean {
  if (answer.kind !== 'refused') return false;
  const { code } = answer.refusal;
  return code === 'lease_conflict' || code === 'not_found';
}

/** A lease's 403 that says what it means; undefined for any other answer. */
export function readLeaseRefusal(answer: NotOk): LeaseAnswer | undefined {
  if (answer.kind !== 'refused' || answer.refusal.status !== 403) return undefined;
  const parsed = v.safeParse(LeaseRefusal, answer.refusal.body);
  if (!parsed.success) return undefined;
  return parsed.output.error === 'node_lost'
    ? { kind: 'node_lost', cleanup: parsed.output.cleanup }
    : { kind: 'not_active', status: parsed.output.status };
}

/** An answer that none of the route's own meanings fits. */
export function undecided(answer: NotOk): Undecided | Unauthenticated | Aborted {
  if (answer.kind === 'aborted') return answer;
  if (answer.kind === 'unreachable') return { kind: 'undecided', reason: answer.reason, retryAfterMs: null };
  const { status, code, retryAfterMs } = answer.refusal;
  if (status === 401) return { kind: 'unauthenticated', code };
  return { kind: 'undecided', reason: `HTTP ${status} ${code ?? 'without a code'}`, retryAfterMs };
}

/** A renewal's refusals of its own: not due, or a certificate request that is not to be repeated as it is. */
export function readRenewRefusal(answer: NotOk): RenewAnswer {
  if (answer.kind === 'refused') {
    const { status, code, message } = answer.refusal;
    if (code === 'renewal_not_due') return { kind: 'not_due' };
    if (status === 400 || status === 413) return { kind: 'refused', reason: `${code ?? `HTTP ${status}`}: ${message}` };
  }
  return undecided(answer);
}
