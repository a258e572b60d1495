import * as v from 'valibot';
import { IdentityResponse } from '../src/protocol/identity.ts';
import { type CompleteRequest, HeartbeatResponse } from '../src/protocol/jobs.ts';
import { type LeasedJob, type LeaseRequest, LeaseResponse } from '../src/protocol/lease.ts';
import { type RenewRequest, RenewResponse } from '../src/protocol/renew.ts';
import {
  completePath,
  HEALTH_PATH,
  heartbeatPath,
  IDENTITY_PATH,
  LEASE_PATH,
  LEASE_TOKEN_HEADER,
  RENEW_PATH,
  sourcePath,
} from '../src/protocol/routes.ts';
import {
  type CompleteAnswer,
  type HeartbeatAnswer,
  type IdentityAnswer,
  isConflict,
  type Lease,
  type LeaseAnswer,
  type RenewAnswer,
  readLeaseRefusal,
  readRenewRefusal,
  type SourceAnswer,
  undecided,
} from './gateway-answers.ts';
import { type Answer, type AnswerTime, type Exchange, HttpsJson } from './https-json.ts';
import type { Identity } from './identity-store.ts';
import type { Time } from './time.ts';

/** The Date header is cut to whole seconds, so a lease may end up to this much earlier than it seems. */
const DATE_HEADER_RESOLUTION_MS = 1_000;

/** A source as it has to be, and where it goes. */
export interface SourceFile {
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** The agent's side of DESIGN §4, over mTLS with one identity. Methods do not throw for what network or gateway do. */
export class GatewayClient {
  readonly #https: HttpsJson;
  readonly #time: Time;
  readonly #underWay = new Set<Promise<unknown>>();
  /** What it presents. */
  readonly identity: Identity;

  constructor(origin: URL, identity: Identity, time: Time) {
    const { certificatePem: cert, keyPem: key, caPem: ca } = identity;
    this.#https = new HttpsJson(origin, { ca, cert, key }, time);
    this.#time = time;
    this.identity = identity;
  }

  /** Asks for a job; `wait_seconds` of the request bounds how long the answer may take. A job that it answers is held by this agent. */
  lease(request: LeaseRequest, signal: AbortSignal): Promise<LeaseAnswer> {
    return this.#tracked(this.#lease(request, signal));
  }

  async #lease(request: LeaseRequest, signal: AbortSignal): Promise<LeaseAnswer> {
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
    const answer = await this.#exchange({
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
    const answer = await this.#exchange({
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

  /** Downloads a build's source into a file, which must not exist, as the holder of the build's lease. */
  async source(
    { id, token }: Pick<Lease, 'id' | 'token'>,
    source: SourceFile,
    signal: AbortSignal,
  ): Promise<SourceAnswer> {
    const headers = { [LEASE_TOKEN_HEADER]: token };
    const download = { path: sourcePath(id), headers, file: source.file, maxBytes: source.bytes, signal };
    const answer = await this.#tracked(this.#https.download(download));
    if (answer.kind !== 'ok') return isConflict(answer) ? { kind: 'conflict' } : undecided(answer);
    const { bytes, sha256 } = answer.body;
    if (bytes === source.bytes && sha256 === source.sha256) return { kind: 'downloaded' };
    return { kind: 'damaged', reason: `the source is ${bytes} bytes of another digest, or not ${source.bytes}` };
  }

  /** Asks whether the gateway answers at all, and what its clock says. */
  healthz(signal: AbortSignal): Promise<Answer<unknown>> {
    return this.#exchange({ method: 'GET', path: HEALTH_PATH, expect: v.unknown(), signal });
  }

  /** Asks who the gateway takes this agent for, and whether a renewal would be granted. */
  async askIdentity(signal: AbortSignal): Promise<IdentityAnswer> {
    const answer = await this.#exchange({ method: 'GET', path: IDENTITY_PATH, expect: IdentityResponse, signal });
    return answer.kind === 'ok' ? { kind: 'known', identity: answer.body, time: answer.time } : undecided(answer);
  }

  /** Asks for a certificate to follow the present one; the same request again gets the same certificate. */
  async renew(request: RenewRequest, signal: AbortSignal): Promise<RenewAnswer> {
    const exchange = { method: 'POST', path: RENEW_PATH, body: request, expect: RenewResponse, signal } as const;
    const answer = await this.#exchange(exchange);
    if (answer.kind !== 'ok') return readRenewRefusal(answer);
    return { kind: 'granted', certificatePem: answer.body.certificate_pem, caPem: answer.body.ca_pem };
  }

  /** Ends every connection once nothing that was asked is without an answer. */
  async retire(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay);
    await this.close();
  }

  /** Ends every connection at once. */
  async close(): Promise<void> {
    await this.#https.close();
  }

  #exchange<T>(exchange: Exchange<T>): Promise<Answer<T>> {
    return this.#tracked(this.#https.exchange(exchange));
  }

  /** Remembers what is under way. A lease is so as a whole, because its answer may need a heartbeat before it is good. */
  async #tracked<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    try {
      return await work;
    } finally {
      this.#underWay.delete(work);
    }
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
