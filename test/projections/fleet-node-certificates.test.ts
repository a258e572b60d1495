import { describe, expect, test } from 'vitest';
import {
  FINGERPRINT,
  make,
  NEW_CA,
  SECOND_FINGERPRINT,
  SECOND_SERIAL,
  SERIAL,
  START,
  sample,
} from '../support/events.ts';
import { fold } from './fold.ts';

const authorized = {
  ...sample.certificate_authorized.data,
  fingerprint: null,
  certificate_pem: null,
  authorized_at: START,
  authorized_position: 1,
  issued_at: null,
  first_used_at: null,
  revoked_at: null,
  revoked_reason: null,
};
const issued = {
  ...authorized,
  fingerprint: FINGERPRINT,
  certificate_pem: sample.certificate_issued.data.certificate_pem,
  issued_at: START + 1_000,
};

describe('fleet_node_certificates', () => {
  test('authorised: everything that is to be signed, nothing issued', () =>
    expect(fold('fleet_node_certificates', sample.certificate_authorized)).toEqual([authorized]));

  test('issued: its text and fingerprint', () =>
    expect(fold('fleet_node_certificates', sample.certificate_authorized, sample.certificate_issued)).toEqual([
      issued,
    ]));

  test('first used: when', () =>
    expect(
      fold(
        'fleet_node_certificates',
        sample.certificate_authorized,
        sample.certificate_issued,
        sample.certificate_first_used,
      ),
    ).toEqual([{ ...issued, first_used_at: START + 2_000 }]));

  test('revoked: each that is named, and no other', () => {
    const others = [SECOND_SERIAL, '0c'.repeat(16)].map((certificate_id) =>
      make('certificate_authorized', { certificate_id }),
    );
    const revoked = make('certificates_revoked', { certificate_ids: [SERIAL, SECOND_SERIAL] });
    const revocation = { revoked_at: START + 3_000, revoked_reason: 'operator' };
    expect(fold('fleet_node_certificates', sample.certificate_authorized, ...others, revoked)).toEqual([
      { ...authorized, ...revocation },
      {
        ...authorized,
        certificate_id: SECOND_SERIAL,
        authorized_at: START + 1_000,
        authorized_position: 2,
        ...revocation,
      },
      { ...authorized, certificate_id: '0c'.repeat(16), authorized_at: START + 2_000, authorized_position: 3 },
    ]);
  });

  test('a rotation is completed: those that it names are revoked, and no other', () => {
    const other = make('certificate_authorized', { certificate_id: SECOND_SERIAL, issuer_ca_sha256: NEW_CA });
    expect(fold('fleet_node_certificates', sample.certificate_authorized, other, sample.ca_rotation_completed)).toEqual(
      [
        { ...authorized, revoked_at: START + 2_000, revoked_reason: 'ca_rotated' },
        {
          ...authorized,
          certificate_id: SECOND_SERIAL,
          issuer_ca_sha256: NEW_CA,
          authorized_at: START + 1_000,
          authorized_position: 2,
        },
      ],
    );
  });

  test('a second one issued: the first stays as it is', () =>
    expect(
      fold(
        'fleet_node_certificates',
        sample.certificate_authorized,
        sample.certificate_issued,
        make('certificate_authorized', { certificate_id: SECOND_SERIAL }),
        make('certificate_issued', { certificate_id: SECOND_SERIAL, fingerprint: SECOND_FINGERPRINT }),
      )[0],
    ).toEqual(issued));
});
