import { describe, expect, test } from 'vitest';
import { recordIssuedCommand } from '../../../src/commands/certificate.ts';
import {
  digest,
  enrolled,
  make,
  pem,
  provisioned,
  SECOND_SECRET,
  SECOND_SERIAL,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';
import { enrollAgain, signed, signedAgain } from './fixtures.ts';

const authorized = [...provisioned, sample.certificate_authorized];

describe('a certificate was signed', () => {
  test('the first of its node: certificate_issued and node_enrolled', async () =>
    expect(await given(...authorized).when(recordIssuedCommand, signed)).toEqual([
      sample.certificate_issued,
      sample.node_enrolled,
    ]));

  test('the caller hands out what was recorded', async () =>
    expect(await given(...authorized).reply(recordIssuedCommand, signed)).toEqual({
      certificate_pem: signed.certificate_pem,
    }));

  test('repeated: no new event', async () =>
    expect(await given(...enrolled).when(recordIssuedCommand, signed)).toEqual([]));

  test('another gateway was first: no new event, told its signature', async () => {
    const late = { ...signed, fingerprint: digest('f9'), certificate_pem: pem('MIIBlate') };
    expect(await given(...enrolled).when(recordIssuedCommand, late)).toEqual([]);
    expect(await given(...enrolled).reply(recordIssuedCommand, late)).toEqual({
      certificate_pem: signed.certificate_pem,
    });
  });

  test('the second of its node: certificate_issued alone', async () =>
    expect(
      await given(
        ...authorized,
        make('node_enrollment_secret_armed', { secret_sha256: SECOND_SECRET }),
        { type: 'certificate_authorized', data: { ...sample.certificate_authorized.data, ...enrollAgain } },
        sample.certificate_issued,
        sample.node_enrolled,
      ).when(recordIssuedCommand, signedAgain),
    ).toEqual([
      make('certificate_issued', {
        certificate_id: SECOND_SERIAL,
        fingerprint: signedAgain.fingerprint,
        certificate_pem: signedAgain.certificate_pem,
      }),
    ]));

  test('never authorised: refused', async () =>
    expect(await given(...provisioned).when(recordIssuedCommand, signed)).toEqual(refusal('certificate_mismatch')));

  test('unknown node: refused', async () =>
    expect(await given().when(recordIssuedCommand, signed)).toEqual(refusal('certificate_mismatch')));

  test('over other bytes than were authorised: refused', async () =>
    expect(await given(...authorized).when(recordIssuedCommand, { ...signed, tbs_sha256: digest('bad') })).toEqual(
      refusal('certificate_mismatch'),
    ));

  test('revoked before it was signed: refused', async () =>
    expect(await given(...authorized, sample.certificates_revoked).when(recordIssuedCommand, signed)).toEqual(
      refusal('enrollment_refused'),
    ));

  test('the node was given up meanwhile: refused', async () =>
    expect(await given(...authorized, sample.node_provisioning_failed).when(recordIssuedCommand, signed)).toEqual(
      refusal('enrollment_refused'),
    ));
});
