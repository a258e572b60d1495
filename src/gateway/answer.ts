import type { IncomingMessage } from 'node:http';
import { RENEWAL_INTERVAL_MS } from '../domain/certificate/renew.ts';
import type { RefusalCode } from '../domain/refusal.ts';
import type { Refusal } from '../domain/result.ts';
import { CSR_REFUSALS } from '../pki/csr.ts';
import type { CsrErrorCode, GatewayErrorCode } from '../protocol/errors.ts';
import type { CleanupTask } from '../protocol/lease.ts';

/** A whole answer: status and JSON text. `close` ends the connection with it. */
export interface Answer {
  readonly status: number;
  readonly text: string;
  readonly close?: boolean;
  readonly retryAfterSeconds?: number;
}

/** An answer of bytes that come piece by piece. */
export interface Download {
  readonly status: 200;
  readonly stream: ReadableStream<Uint8Array>;
  readonly bytes: number;
  readonly sha256: string;
}

/** How each error code of the protocol is answered: one status, one sentence, whoever asks. src/pki words its own (all 400). */
const problems = {
  node_not_active: { status: 403, message: 'The node gets no work in its present status.' },
  node_lost: { status: 403, message: 'The node was declared lost; its work runs elsewhere.' },
  lease_conflict: { status: 409, message: 'The lease is not held with this token.' },
  renewal_not_due: { status: 409, message: 'The certificate is not due for renewal.' },
  enrollment_refused: { status: 401, message: 'Enrolment refused.' },
  certificate_expired: { status: 401, message: 'The certificate has expired.' },
  certificate_unknown: { status: 401, message: 'The certificate is not accepted.' },
  rate_limited: { status: 429, message: 'Too many requests.' },
  not_found: { status: 404, message: 'There is nothing here.' },
  invalid_request: { status: 400, message: 'The request is not what this route takes.' },
  body_too_large: { status: 413, message: 'The body is larger than 64 KiB.' },
  unavailable: { status: 503, message: 'The control plane cannot answer now. Try again.' },
  internal: { status: 500, message: 'Internal error.' },
} as const satisfies Record<Exclude<GatewayErrorCode, CsrErrorCode>, { status: number; message: string }>;

/**
 * What each refusal of a command is to an agent. Total over the codes: a new one does not compile until someone has thought about it
 * here. Those that only operators' commands can meet are defects when an agent meets them.
 */
const errorOf = {
  enrollment_refused: 'enrollment_refused',
  certificate_unknown: 'certificate_unknown',
  certificate_expired: 'certificate_expired',
  node_not_active: 'node_not_active',
  lease_conflict: 'lease_conflict',
  clock_unsafe: 'unavailable',
  certificate_mismatch: 'unavailable',
  renewal_not_due: 'renewal_not_due',
  renewal_too_often: 'rate_limited',
  issuer_not_current: 'unavailable',
  node_unknown: 'internal',
  node_ambiguous: 'internal',
  node_name_taken: 'internal',
  node_exists: 'internal',
  node_not_provisioning: 'internal',
  node_not_failed: 'internal',
  node_silent: 'internal',
  capacity_unknown: 'internal',
  job_unknown: 'internal',
  job_target_unclear: 'internal',
  job_exists: 'internal',
  node_not_enrolled: 'internal',
  node_retired: 'internal',
  certificate_not_found: 'internal',
  certificate_ambiguous: 'internal',
  ca_not_initialized: 'internal',
  ca_already_initialized: 'internal',
  ca_rotation_running: 'internal',
  ca_rotation_unknown: 'internal',
  ca_no_rotation: 'internal',
  ca_files_differ: 'internal',
  ca_used_before: 'internal',
  ca_not_trusted_everywhere: 'internal',
  ca_rotation_not_issuing: 'internal',
  ca_rotation_blocked: 'internal',
  ca_bundle_outdated: 'internal',
  ca_not_served_everywhere: 'internal',
  ca_rotation_too_large: 'internal',
  ca_has_issued: 'internal',
  ca_missing: 'internal',
  ca_key_missing: 'internal',
  gateway_certificate_unreadable: 'internal',
  gateway_names_differ: 'internal',
  node_lost: 'internal',
  node_revoked: 'internal',
  term_superseded: 'internal',
  deployment_unknown: 'internal',
  deployment_name_taken: 'internal',
  deployment_ended: 'internal',
  release_not_done: 'internal',
  node_queue_full: 'internal',
  hostname_taken: 'internal',
  member_unknown: 'internal',
  instance_not_waiting: 'internal',
  node_not_schedulable: 'internal',
  node_not_member: 'internal',
  node_not_eligible: 'internal',
  node_full: 'internal',
  subnet_slots_used_up: 'internal',
  network_not_admitted: 'internal',
  bridge_netfilter_off: 'internal',
  database_unknown: 'internal',
  database_name_taken: 'internal',
  database_not_stranded: 'internal',
  database_held: 'internal',
  node_not_draining: 'internal',
  drain_has_moved: 'internal',
  node_busy: 'internal',
  node_in_service: 'internal',
  pool_not_held: 'internal',
  losses_held: 'internal',
  losses_frozen: 'internal',
} as const satisfies Record<RefusalCode, GatewayErrorCode>;

/** Why a new attempt later may do, told to clients that back off by it. */
const RETRY_AFTER_SECONDS = 1;

const worded: readonly [string, { status: number; message: string }][] = [
  ...Object.entries(problems),
  ...Object.entries(CSR_REFUSALS).map(([code, message]): [string, { status: number; message: string }] => [
    code,
    { status: 400, message },
  ]),
];

const prepared = new Map(
  worded.map(([error, { status, message }]): [string, Answer] => [
    error,
    {
      status,
      text: JSON.stringify({ error, message }),
      ...(status === 401 || status === 413 ? { close: true } : {}),
      ...(status === 429 || status === 503 ? { retryAfterSeconds: RETRY_AFTER_SECONDS } : {}),
    },
  ]),
);

/** The answer of an error code. A 401 ends its connection: there is nothing more to say on it. */
export function problem(error: GatewayErrorCode): Answer {
  const answer = prepared.get(error);
  if (answer === undefined) throw new Error(`no answer is prepared for ${error}`);
  return answer;
}

/** A 400 that says where the body is not what the route takes; `detail` never quotes what was sent. */
export function invalid(detail: string): Answer {
  return { status: 400, text: JSON.stringify({ error: 'invalid_request', message: detail.slice(0, 256) }) };
}

/** The answer of a command's refusal. */
export function refused({ code, details }: Refusal): Answer {
  if (code === 'node_not_active') return withoutWork(String(details['status']));
  if (code === 'renewal_too_often') {
    return { ...problem('rate_limited'), retryAfterSeconds: RENEWAL_INTERVAL_MS / 1_000 };
  }
  return problem(errorOf[code]);
}

/** The 403 of a node that gets no work in its status. */
export function withoutWork(nodeStatus: string): Answer {
  const { status, message } = problems.node_not_active;
  return { status, text: JSON.stringify({ error: 'node_not_active', message, status: nodeStatus }) };
}

/** The 403 of a lost node, with what it has to remove from its host. */
export function lostNode(cleanup: readonly CleanupTask[]): Answer {
  const { status, message } = problems.node_lost;
  return { status, text: JSON.stringify({ error: 'node_lost', message, cleanup }) };
}

/** 200. */
export function success(body: object): Answer {
  return { status: 200, text: JSON.stringify(body) };
}

const JSON_HEADERS = { 'content-type': 'application/json' } as const;
const CLOSING_HEADERS = { 'content-type': 'application/json', connection: 'close' } as const;

/** An answer as hono sends it. The plain string and header object are what @hono/node-server sends without a detour. */
export function toResponse(answer: Answer | Download, closing = false): Response {
  if ('stream' in answer) return download(answer);
  const headers = answer.close === true || closing ? CLOSING_HEADERS : JSON_HEADERS;
  const { retryAfterSeconds } = answer;
  return new Response(answer.text, {
    status: answer.status,
    headers: retryAfterSeconds === undefined ? headers : { ...headers, 'retry-after': String(retryAfterSeconds) },
  });
}

function download({ stream, bytes, sha256 }: Download): Response {
  return new Response(stream, {
    headers: {
      'content-type': 'application/octet-stream',
      'content-length': String(bytes),
      'x-content-sha256': sha256,
    },
  });
}

/** The whole body of a request, or why there is none. `gone`: the client broke off. */
export type BodyReading =
  | { readonly ok: true; readonly bytes: Buffer }
  | { readonly ok: false; readonly reason: 'too_large' | 'gone' };

/** Reads a body of at most `limit` bytes; of a larger one no more than that is held. Never rejects. */
export function readBody(incoming: IncomingMessage, limit: number): Promise<BodyReading> {
  if (Number(incoming.headers['content-length'] ?? 0) > limit) {
    return Promise.resolve({ ok: false, reason: 'too_large' });
  }
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const done = (reading: BodyReading) => {
      incoming.off('data', onData).off('end', onEnd).off('close', onClose);
      resolve(reading);
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      if (size > limit) done({ ok: false, reason: 'too_large' });
      else chunks.push(chunk);
    };
    const onEnd = () => {
      const [first] = chunks;
      done({ ok: true, bytes: chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks) });
    };
    const onClose = () => done({ ok: false, reason: 'gone' });
    incoming.on('data', onData).on('end', onEnd).on('close', onClose);
    incoming.on('error', () => undefined);
  });
}
