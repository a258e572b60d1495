import * as v from 'valibot';
import { NodeId, Sha256Hex, Timestamp } from './identifiers.ts';
import { NodeStatusName } from './lease.ts';

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
});
/** 200 of `GET /v1/agent/identity`. */
export type IdentityResponse = v.InferOutput<typeof IdentityResponse>;
