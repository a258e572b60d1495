import type { CertificateState } from '../src/domain/certificate/state.ts';
import { creates, defineProjection, updates, updatesEach } from './projection.ts';
import { defineTable, text, timestamp } from './table.ts';

const table = defineTable<CertificateState>()({
  name: 'fleet_node_certificates',
  key: 'certificate_id',
  columns: {
    certificate_id: text,
    node_id: text,
    purpose: text,
    secret_sha256: text,
    secret_expires_at: timestamp,
    public_key_spki: text,
    tbs_sha256: text,
    issuer_ca_sha256: text,
    not_before: timestamp,
    not_after: timestamp,
    replaces_id: text.orNull,
    fingerprint: text.orNull,
    certificate_pem: text.orNull,
    authorized_at: timestamp,
    issued_at: timestamp.orNull,
    first_used_at: timestamp.orNull,
    revoked_at: timestamp.orNull,
    revoked_reason: text.orNull,
  },
  indexes: [
    { name: 'fleet_node_certificates_fingerprint', columns: ['fingerprint'], unique: true },
    { name: 'fleet_node_certificates_node', columns: ['node_id'] },
  ],
});

/** One row a certificate that was authorised, whether it was issued, used or revoked. Source of the gateway's authentication. */
export const fleetNodeCertificates = defineProjection(table, {
  certificate_authorized: creates(
    (e) => e.data.certificate_id,
    ({ at, data: { cause: _cause, ...data } }): CertificateState => ({
      ...data,
      fingerprint: null,
      certificate_pem: null,
      authorized_at: at,
      issued_at: null,
      first_used_at: null,
      revoked_at: null,
      revoked_reason: null,
    }),
  ),
  certificate_issued: updates(
    (e) => e.data.certificate_id,
    (row, { at, data }) => ({
      ...row,
      fingerprint: data.fingerprint,
      certificate_pem: data.certificate_pem,
      issued_at: at,
    }),
  ),
  certificate_first_used: updates(
    (e) => e.data.certificate_id,
    (row, { at }) => ({ ...row, first_used_at: at }),
  ),
  certificates_revoked: updatesEach(
    (e) => e.data.certificate_ids,
    (row, { at, data }) => ({ ...row, revoked_at: at, revoked_reason: data.reason }),
  ),
});
