import { describe, expect, test } from 'vitest';
import type { FleetEvent } from '../../src/domain/event/catalogue.ts';
import { CA, make, NEW_CA, ROTATION, START, sample } from '../support/events.ts';
import { fold } from './fold.ts';

const initialized = sample.ca_initialized;
const begun = sample.ca_rotation_begun;
const switched = sample.ca_issuer_switched;
const completed = sample.ca_rotation_completed;
const aborted = sample.ca_rotation_aborted;

const oldCa = { sha256: CA, pem: initialized.data.ca_pem, not_after: initialized.data.not_after };
const newCa = { sha256: NEW_CA, pem: begun.data.ca_pem, not_after: begun.data.not_after };
const steady = {
  name: 'fleet',
  current_ca_sha256: CA,
  issuing_ca_sha256: CA,
  rotation_id: null,
  next_ca_sha256: null,
  trusted: [oldCa],
  initialized_at: START,
};
const rotating = { ...steady, rotation_id: ROTATION, next_ca_sha256: NEW_CA, trusted: [newCa, oldCa] };
const rotated = { ...steady, current_ca_sha256: NEW_CA, issuing_ca_sha256: NEW_CA, trusted: [newCa] };

describe('fleet_ca', () => {
  test.each<[string, readonly FleetEvent[], object]>([
    ['initialised: one CA, which issues', [initialized], steady],
    ['begun: two are trusted, the new one first; the old one issues', [initialized, begun], rotating],
    ['switched: the new one issues', [initialized, begun, switched], { ...rotating, issuing_ca_sha256: NEW_CA }],
    ['refused: as before', [initialized, begun, sample.ca_rotation_refused], rotating],
    ['completed: the new one is all there is', [initialized, begun, switched, completed], rotated],
    ['aborted: the old one is all there is', [initialized, begun, aborted], steady],
    ['aborted after it was switched: the old one issues', [initialized, begun, switched, aborted], steady],
  ])('%s', (_, events, expected) => expect(fold('fleet_ca', ...events)).toEqual([expected]));
});

describe('ca_rotations', () => {
  const row = {
    rotation_id: ROTATION,
    status: 'begun',
    previous_ca_sha256: CA,
    ca_sha256: NEW_CA,
    begun_at: START,
    issuing_at: null,
    ended_at: null,
    refused_attempts: 0,
    revoked_certificates: 0,
  };
  const issuing = { ...row, status: 'issuing', issuing_at: START + 1_000 };

  test.each<[string, readonly FleetEvent[], object]>([
    ['begun: from which CA to which', [begun], row],
    ['switched: since when the new CA issues', [begun, switched], issuing],
    [
      'refused: counted',
      [begun, sample.ca_rotation_refused, sample.ca_rotation_refused],
      { ...row, refused_attempts: 2 },
    ],
    ['refused while none was under way: not counted', [begun, make('ca_rotation_refused', { rotation_id: null })], row],
    [
      'completed: when, and how many certificates it revoked',
      [begun, switched, completed],
      { ...issuing, status: 'completed', ended_at: START + 2_000, revoked_certificates: 1 },
    ],
    ['aborted: when', [begun, aborted], { ...row, status: 'aborted', ended_at: START + 1_000 }],
    [
      'aborted after it was switched: when the new CA could issue and when it ended',
      [begun, switched, aborted],
      { ...issuing, status: 'aborted', ended_at: START + 2_000 },
    ],
  ])('%s', (_, events, expected) => expect(fold('ca_rotations', ...events)).toEqual([expected]));
});
