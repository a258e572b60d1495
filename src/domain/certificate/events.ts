import * as v from 'valibot';
import { event, unchanged } from '../event/definition.ts';
import { certificatePem, instantMs, ipAddress, serialHex, sha256Hex, spkiBase64, uuid } from '../fields.ts';

/** Why certificates were revoked: by an operator, or because a newer one of the node was used. */
const revocationReason = v.picklist(['operator', 'superseded']);

/** Everything in a certificate that may be signed, but for why and by what right. */
const authorized = {
  certificate_id: serialHex,
  node_id: uuid,
  purpose: v.picklist(['agent']),
  public_key_spki: spkiBase64,
  tbs_sha256: sha256Hex,
  issuer_ca_sha256: sha256Hex,
  not_before: instantMs,
  not_after: instantMs,
  replaces_id: v.nullable(serialHex),
};

/** How many certificates one event revokes; more are revoked by several. */
export const MOST_REVOKED = 1_000;

const revoked = {
  node_id: uuid,
  certificate_ids: v.pipe(v.array(serialHex), v.minLength(1), v.maxLength(MOST_REVOKED)),
};

/**
 * Events of a node's certificates, in the node's stream. `certificate_id` is the serial number in hex.
 * `certificate_authorized` comes before the signature, so that nothing signed is unrecorded; everything that goes into the
 * to-be-signed bytes is in it, so that a lost signature can be made again over the same bytes (`tbs_sha256`).
 */
export const certificateEvents = {
  certificate_authorized: {
    version: 2,
    data: v.strictObject({
      ...authorized,
      cause: v.picklist(['enrollment', 'renewal', 'reenrollment']),
      /** Of the enrolment secret that was used up; null for a renewal. */
      secret_sha256: v.nullable(sha256Hex),
      secret_expires_at: v.nullable(instantMs),
    }),
    earlier: {
      1: {
        data: v.strictObject({
          ...authorized,
          cause: v.picklist(['enrollment']),
          secret_sha256: sha256Hex,
          secret_expires_at: instantMs,
        }),
        upcast: unchanged,
      },
    },
  },
  certificate_issued: event(
    v.strictObject({
      certificate_id: serialHex,
      node_id: uuid,
      fingerprint: sha256Hex,
      certificate_pem: certificatePem,
    }),
  ),
  certificate_first_used: event(v.strictObject({ certificate_id: serialHex, node_id: uuid, fingerprint: sha256Hex })),
  certificates_revoked: {
    version: 2,
    data: v.strictObject({ ...revoked, reason: revocationReason }),
    earlier: { 1: { data: v.strictObject({ ...revoked, reason: v.picklist(['operator']) }), upcast: unchanged } },
  },
  certificate_conflict_seen: event(
    v.strictObject({
      node_id: uuid,
      certificate_id: serialHex,
      boot_ids: v.pipe(v.array(uuid), v.length(2)),
      addresses: v.pipe(v.array(ipAddress), v.length(2)),
    }),
  ),
} as const;
