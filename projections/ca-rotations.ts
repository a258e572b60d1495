import type { RotationState } from '../src/domain/ca/state.ts';
import { creates, defineProjection, updates, updatesEach } from './projection.ts';
import { defineTable, integer, text, timestamp } from './table.ts';

const table = defineTable<RotationState>()({
  name: 'ca_rotations',
  key: 'rotation_id',
  columns: {
    rotation_id: text,
    status: text,
    previous_ca_sha256: text,
    ca_sha256: text,
    begun_at: timestamp,
    issuing_at: timestamp.orNull,
    ended_at: timestamp.orNull,
    refused_attempts: integer,
    revoked_certificates: integer,
  },
  indexes: [{ name: 'ca_rotations_ca', columns: ['ca_sha256'], unique: true }],
});

/** One row a rotation, however it ended. Source of `fleet ca status`; a CA is never rotated to twice. */
export const caRotations = defineProjection(table, {
  ca_rotation_begun: creates(
    (e) => e.data.rotation_id,
    ({ at, data }): RotationState => ({
      rotation_id: data.rotation_id,
      status: 'begun',
      previous_ca_sha256: data.previous_ca_sha256,
      ca_sha256: data.ca_sha256,
      begun_at: at,
      issuing_at: null,
      ended_at: null,
      refused_attempts: 0,
      revoked_certificates: 0,
    }),
  ),
  ca_issuer_switched: updates(
    (e) => e.data.rotation_id,
    (row, { at }) => ({ ...row, status: 'issuing', issuing_at: at }),
  ),
  ca_rotation_refused: updatesEach(
    (e) => (e.data.rotation_id === null ? [] : [e.data.rotation_id]),
    (row) => ({ ...row, refused_attempts: row.refused_attempts + 1 }),
  ),
  ca_rotation_completed: updates(
    (e) => e.data.rotation_id,
    (row, { at, data }) => ({
      ...row,
      status: 'completed',
      ended_at: at,
      revoked_certificates: data.revoked_certificate_ids.length,
    }),
  ),
  ca_rotation_aborted: updates(
    (e) => e.data.rotation_id,
    (row, { at }) => ({ ...row, status: 'aborted', ended_at: at }),
  ),
});
