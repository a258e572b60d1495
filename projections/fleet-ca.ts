import type { CaState } from '../src/domain/ca/state.ts';
import { creates, defineProjection, updates } from './projection.ts';
import { defineTable, json, text, timestamp } from './table.ts';

const table = defineTable<CaState>()({
  name: 'fleet_ca',
  key: 'name',
  columns: {
    name: text,
    current_ca_sha256: text,
    issuing_ca_sha256: text,
    rotation_id: text.orNull,
    next_ca_sha256: text.orNull,
    trusted: json,
    initialized_at: timestamp,
  },
  indexes: [],
});

/** The key of the only row. */
export const FLEET = 'fleet';

/** Who issues and who is trusted, in one row. Decisions on certificates read it. */
export const fleetCa = defineProjection(table, {
  ca_initialized: creates(
    () => FLEET,
    ({ at, data }): CaState => ({
      name: FLEET,
      current_ca_sha256: data.ca_sha256,
      issuing_ca_sha256: data.ca_sha256,
      rotation_id: null,
      next_ca_sha256: null,
      trusted: [{ sha256: data.ca_sha256, pem: data.ca_pem, not_after: data.not_after }],
      initialized_at: at,
    }),
  ),
  ca_rotation_begun: updates(
    () => FLEET,
    (row, { data }) => ({
      ...row,
      rotation_id: data.rotation_id,
      next_ca_sha256: data.ca_sha256,
      trusted: [{ sha256: data.ca_sha256, pem: data.ca_pem, not_after: data.not_after }, ...row.trusted],
    }),
  ),
  ca_issuer_switched: updates(
    () => FLEET,
    (row, { data }) => ({ ...row, issuing_ca_sha256: data.ca_sha256 }),
  ),
  ca_rotation_completed: updates(
    () => FLEET,
    (row, { data }) => settled(row, data.ca_sha256),
  ),
  ca_rotation_aborted: updates(
    () => FLEET,
    (row, { data }) => settled(row, data.restored_ca_sha256),
  ),
});

/** No rotation is under way and one CA is all there is. */
function settled(row: CaState, caSha256: string): CaState {
  return {
    ...row,
    current_ca_sha256: caSha256,
    issuing_ca_sha256: caSha256,
    rotation_id: null,
    next_ca_sha256: null,
    trusted: row.trusted.filter(({ sha256 }) => sha256 === caSha256),
  };
}
