import * as v from 'valibot';
import type { GatewayErrorCode } from '../src/protocol/errors.ts';
import { type CompleteRequest, HeartbeatResponse } from '../src/protocol/jobs.ts';
import {
  type CleanupTask,
  type LeasedJob,
  LeaseRefusal,
  type LeaseRequest,
  LeaseResponse,
} from '../src/protocol/lease.ts';
import { completePath, HEALTH_PATH, heartbeatPath, LEASE_PATH } from '../src/protocol/routes.ts';
import { type Answer, type AnswerTime, HttpsJson } from './https-json.ts';
import type { Identity } from './identity-store.ts';
import type { Time } from './time.ts';

/** The Date header is cut to whole seconds, so a lease may end up to this much earlier than it seems. */
const DATE_HEADER_RESOLUTION_MS = 1_000;

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

/** The agent's side of DESIGN §4, over mTLS with one identity. Methods do not throw for what network or gateway do. */
export class GatewayClient {
  readonly #https: HttpsJson;
  readonly #time: Time;
  /** Generation of the identity that it presents. */
  readonly generation: number;

  constructor(origin: URL, identity: Identity, time: Time) {
    const { certificatePem: cert, keyPem: key, caPem: ca } = identity;
    this.#https = new HttpsJson(origin, { ca, cert, key }, time);
    this.#time = time;
    this.generation = identity.generation;
  }

  /** Asks for a job; `wait_seconds` of the request bounds how long the answer may take. A job that it answers is held by this agent. */
  async lease(request: LeaseRequest, signal: AbortSignal): Promise<LeaseAnswer> {
    const answer = await this.#https.exchange({
      method: 'POST',
      path: LEASE_PATH,
      body: request,
      expect: LeaseResponse,
      signal,
      waitMs: (request.wait_seconds ?? 0) * 1_000,
    });
    if (answer.kind !== 'ok') return readLeaseRefusal(answer) ?? undecided(answer);
    const { job, log_head: logHead } = answer.body;
    return job === null ? { kind: 'idle', logHead } : this.#leased(job, logHead, answer.time, signal);
  }

  /** Extends a lease. */
  async heartbeat(lease: Pick<Lease, 'id' | 'token'>, signal: AbortSignal): Promise<HeartbeatAnswer> {
    const answer = await this.#https.exchange({
      method: 'POST',
      path: heartbeatPath(lease.id),
      body: { lease_token: lease.token },
      expect: HeartbeatResponse,
      signal,
    });
    if (answer.kind === 'ok') {
      return { kind: 'extended', endsAtMs: this.#localEnd(answer.body.lease_expires_at, answer.time) };
    }
    return isConflict(answer) ? { kind: 'conflict' } : undecided(answer);
  }

  /** Hands in a job's outcome; repeating an accepted one is accepted again. */
  async complete(jobId: string, request: CompleteRequest, signal: AbortSignal): Promise<CompleteAnswer> {
    const answer = await this.#https.exchange({
      method: 'POST',
      path: completePath(jobId),
      body: request,
      expect: v.unknown(),
      signal,
    });
    if (answer.kind === 'ok') return { kind: 'accepted' };
    if (isConflict(answer)) return { kind: 'conflict' };
    if (answer.kind === 'refused' && (answer.refusal.status === 400 || answer.refusal.status === 413)) {
      return { kind: 'rejected', reason: answer.refusal.message };
    }
    return undecided(answer);
  }

  /** Asks whether the gateway answers at all, and what its clock says. */
  healthz(signal: AbortSignal): Promise<Answer<unknown>> {
    return this.#https.exchange({ method: 'GET', path: HEALTH_PATH, expect: v.unknown(), signal });
  }

  /** Ends every connection at once. */
  async close(): Promise<void> {
    await this.#https.close();
  }

  /**
   * A lease that was asked for long ago (the gateway waited for a job, or the answer was slow) may have little left or nothing that is
   * certain. A heartbeat, which is answered at once, extends it and tells its end anew; until then no work begins.
   */
  async #leased(job: LeasedJob, logHead: string, time: AnswerTime, signal: AbortSignal): Promise<LeaseAnswer> {
    const { id, kind, payload, lease_token: token, lease_expires_at: expiresAt } = job;
    const lease = { id, kind, payload, token, endsAtMs: this.#localEnd(expiresAt, time) };
    const waitedMs = this.#time.nowMs() - time.sentAtMs;
    if (waitedMs < lease.endsAtMs - this.#time.nowMs()) return { kind: 'job', logHead, lease };
    const held = await this.heartbeat(lease, signal);
    if (held.kind === 'extended') return { kind: 'job', logHead, lease: { ...lease, endsAtMs: held.endsAtMs } };
    if (held.kind !== 'conflict') return held;
    return { kind: 'undecided', reason: 'the lease was over before its answer came', retryAfterMs: null };
  }

  /**
   * When a lease ends by the own clock, at the earliest. Both ends of its length are the gateway's clock, so a wrong clock of the host
   * changes nothing. It is counted from when it was asked for: how long the answer was on its way, nobody knows.
   */
  #localEnd(expiresAt: string, { sentAtMs, serverTimeMs }: AnswerTime): number {
    if (serverTimeMs === null) return this.#time.nowMs();
    return sentAtMs + (Date.parse(expiresAt) - serverTimeMs) - DATE_HEADER_RESOLUTION_MS;
  }
}

type NotOk = Exclude<Answer<unknown>, { kind: 'ok' }>;

/** 409 by name; 404 because a job that the gateway does not know cannot be held either. */
function isConflict(answer: NotOk): boolean {
  if (answer.kind !== 'refused') return false;
  const { code } = answer.refusal;
  return code === 'lease_conflict' || code === 'not_found';
}

function readLeaseRefusal(answer: NotOk): LeaseAnswer | undefined {
  if (answer.kind !== 'refused' || answer.refusal.status !== 403) return undefined;
  const parsed = v.safeParse(LeaseRefusal, answer.refusal.body);
  if (!parsed.success) return undefined;
  return parsed.output.error === 'node_lost'
    ? { kind: 'node_lost', cleanup: parsed.output.cleanup }
    : { kind: 'not_active', status: parsed.output.status };
}

function undecided(answer: NotOk): Undecided | Unauthenticated | Aborted {
  if (answer.kind === 'aborted') return answer;
  if (answer.kind === 'unreachable') return { kind: 'undecided', reason: answer.reason, retryAfterMs: null };
  const { status, code, retryAfterMs } = answer.refusal;
  if (status === 401) return { kind: 'unauthenticated', code };
  return { kind: 'undecided', reason: `HTTP ${status} ${code ?? 'without a code'}`, retryAfterMs };
}
