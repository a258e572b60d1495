import type { CertificateState } from '../src/domain/certificate/state.ts';
import { creates, defineProjection, updates, updatesEach } from './projection.ts';
import { bigint, defineTable, text, timestamp } from './table.ts';

const table = defineTable<CertificateState>()({
  name: 'fleet_node_certificates',
  key: 'certificate_id',
  columns: {
    certificate_id: text,
    node_id: text,
    purpose: text,
    cause: text,
    secret_sha256: text.orNull,
    secret_expires_at: timestamp.orNull,
    public_key_spki: text,
    tbs_sha256: text,
    issuer_ca_sha256: text,
    not_before: timestamp,
    not_after: timestamp,
    replaces_id: text.orNull,
    fingerprint: text.orNull,
    certificate_pem: text.orNull,
    authorized_at: timestamp,
    authorized_position: bigint,
    issued_at: timestamp.orNull,
    first_used_at: timestamp.orNull,
    revoked_at: timestamp.orNull,
    revoked_reason: text.orNull,
  },
  indexes: [
    { name: 'fleet_node_certificates_fingerprint', columns: ['fingerprint'], unique: true },
    { name: 'fleet_node_certificates_node', columns: ['node_id'] },
    { name: 'fleet_node_certificates_secret', columns: ['secret_sha256'], where: 'secret_sha256 IS NOT NULL' },
    { name: 'fleet_node_certificates_issuer', columns: ['issuer_ca_sha256'] },
    { name: 'fleet_node_certificates_in_force', columns: ['node_id'], where: 'revoked_at IS NULL' },
  ],
});

/** One row a certificate that was authorised, whether it was issued, used or revoked. Source of the gateway's authentication. */
export const fleetNodeCertificates = defineProjection(table, {
  certificate_authorized: creates(
    (e) => e.data.certificate_id,
    ({ at, position, data }): CertificateState => ({
      ...data,
      fingerprint: null,
      certificate_pem: null,
      authorized_at: at,
      authorized_position: position,
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
  ca_rotation_completed: updatesEach(
    (e) => e.data.revoked_certificate_ids,
    (row, { at }) => ({ ...row, revoked_at: at, revoked_reason: 'ca_rotated' }),
  ),
  certificates_revoked: updatesEach(
    (e) => e.data.certificate_ids,
    (row, { at, data }) => ({ ...row, revoked_at: at, revoked_reason: data.reason }),
  ),
});
