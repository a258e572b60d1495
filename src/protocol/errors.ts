import * as v from 'valibot';
import { ERROR_MESSAGE_MAX_LENGTH } from './limits.ts';
import { boundedText } from './text.ts';

/** Why a certificate request is refused; src/pki decides which. Each is answered 400 and uses no secret up. */
export const CSR_ERROR_CODES = [
  'csr_too_large',
  'csr_malformed',
  'csr_key_unsupported',
  'csr_algorithm_unsupported',
  'csr_subject_mismatch',
  'csr_duplicate_attribute',
  'csr_duplicate_extension',
  'csr_extension_unsupported',
  'csr_san_mismatch',
  'csr_requests_ca',
  'csr_signature_invalid',
] as const;

/** Every code that the gateway answers with; DESIGN §4. */
export const GATEWAY_ERROR_CODES = [
  /** 403: authenticated, but the node's status gets no work. */
  'node_not_active',
  /** 403: its work was moved; the answer carries what to remove. */
  'node_lost',
  /** 409: the token is not (or no longer) the lease's. Final for this lease. */
  'lease_conflict',
  /** 409: more than a third of the certificate's life is left, and the CA has not changed. */
  'renewal_not_due',
  /** 401: one body for an unknown node, a wrong, expired or used secret, and a node that does not await enrolment. */
  'enrollment_refused',
  /** 401: by a trusted CA, but out of its validity. */
  'certificate_expired',
  /** 401: one body for an unknown, a revoked and a wrong-purpose certificate. */
  'certificate_unknown',
  /** 429, with Retry-After. */
  'rate_limited',
  /** 404. */
  'not_found',
  /** 400: not JSON, unknown fields, out of bounds. */
  'invalid_request',
  /** 413. */
  'body_too_large',
  /** 503: database away, queue full, or stopping. Retry. */
  'unavailable',
  /** 500. */
  'internal',
  ...CSR_ERROR_CODES,
] as const;

/** One of {@link CSR_ERROR_CODES}. */
export type CsrErrorCode = (typeof CSR_ERROR_CODES)[number];
/** One of {@link GATEWAY_ERROR_CODES}. */
export type GatewayErrorCode = (typeof GATEWAY_ERROR_CODES)[number];

const message = boundedText(ERROR_MESSAGE_MAX_LENGTH);

/**
 * The body of every answer that is not 2xx, as far as all of them share it.
 * Agents read it with fields they do not know dropped, so that a newer gateway may add some.
 */
export const ErrorBody = v.object({ error: v.picklist(GATEWAY_ERROR_CODES), message });
/** Body of every answer that is not 2xx. */
export type ErrorBody = v.InferOutput<typeof ErrorBody>;
