import { describe, expect, test } from 'vitest';
import { FINGERPRINT, make, SECOND_FINGERPRINT, SECOND_SERIAL, SERIAL, START, sample } from '../support/events.ts';
import { fold } from './fold.ts';

const { cause: _, ...authorizedData } = sample.certificate_authorized.data;
const authorized = {
  ...authorizedData,
  fingerprint: null,
  certificate_pem: null,
  authorized_at: START,
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
      { ...authorized, certificate_id: SECOND_SERIAL, authorized_at: START + 1_000, ...revocation },
      { ...authorized, certificate_id: '0c'.repeat(16), authorized_at: START + 2_000 },
    ]);
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
