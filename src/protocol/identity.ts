import * as v from 'valibot';
import { NodeId, Sha256Hex, Timestamp } from './identifiers.ts';
import { NodeStatusName } from './lease.ts';

/** Why a certificate is due for renewal: less than a third of its life is left, or its issuer issues no more. */
const RENEWAL_REASONS = ['lifetime', 'issuer'] as const;

/** 200 of `GET /v1/agent/identity`: who the gateway takes the connection for. */
export const IdentityResponse = v.object({
  node_id: NodeId,
  status: NodeStatusName,
  certificate: v.object({
    fingerprint_sha256: Sha256Hex,
    serial: v.pipe(v.string(), v.regex(/^[0-9a-f]{1,64}$/)),
    not_before: Timestamp,
    not_after: Timestamp,
  }),
  trust_bundle_sha256: Sha256Hex,
  /** Whether a renewal would be granted now; a gateway of before renewals says nothing. */
  renewal: v.optional(
    v.object({
      due: v.boolean(),
      /** Null when it is not due. An agent takes a newer gateway's reason for one that cannot wait. */
      reason: v.nullable(v.fallback(v.picklist(RENEWAL_REASONS), 'issuer')),
    }),
  ),
});
/** 200 of `GET /v1/agent/identity`. */
export type IdentityResponse = v.InferOutput<typeof IdentityResponse>;
