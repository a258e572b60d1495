import * as v from 'valibot';
import { event } from '../event/definition.ts';
import { certificatePem, instantMs, serialHex, sha256Hex, spkiBase64, uuid } from '../fields.ts';

/** Why certificates were revoked. */
const revocationReason = v.picklist(['operator']);

/**
 * Events of a node's certificates, in the node's stream. `certificate_id` is the serial number in hex.
 * `certificate_authorized` comes before the signature, so that nothing signed is unrecorded; everything that goes into the
 * to-be-signed bytes is in it, so that a lost signature can be made again over the same bytes (`tbs_sha256`).
 */
export const certificateEvents = {
  certificate_authorized: event(
    v.strictObject({
      certificate_id: serialHex,
      node_id: uuid,
      purpose: v.picklist(['agent']),
      cause: v.picklist(['enrollment']),
      secret_sha256: sha256Hex,
      secret_expires_at: instantMs,
      public_key_spki: spkiBase64,
      tbs_sha256: sha256Hex,
      issuer_ca_sha256: sha256Hex,
      not_before: instantMs,
      not_after: instantMs,
      replaces_id: v.nullable(serialHex),
    }),
  ),
  certificate_issued: event(
    v.strictObject({
      certificate_id: serialHex,
      node_id: uuid,
      fingerprint: sha256Hex,
      certificate_pem: certificatePem,
    }),
  ),
  certificate_first_used: event(v.strictObject({ certificate_id: serialHex, node_id: uuid, fingerprint: sha256Hex })),
  certificates_revoked: event(
    v.strictObject({
      node_id: uuid,
      certificate_ids: v.pipe(v.array(serialHex), v.minLength(1), v.maxLength(1000)),
      reason: revocationReason,
    }),
  ),
} as const;
