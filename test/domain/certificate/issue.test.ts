import { describe, expect, test } from 'vitest';
import { recordIssuedCommand } from '../../../src/commands/certificate.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import {
  digest,
  enrolled,
  issuing,
  make,
  pem,
  provisioned,
  renewed,
  SECOND_SECRET,
  SECOND_SERIAL,
  SERIAL,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';
import { enrollAgain, signed, signedAgain } from './fixtures.ts';

const ofOldCa = make('certificate_authorized', {
  certificate_id: SECOND_SERIAL,
  cause: 'renewal',
  secret_sha256: null,
  secret_expires_at: null,
  tbs_sha256: signedAgain.tbs_sha256,
  replaces_id: SERIAL,
});
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

  test('the node was retired meanwhile: refused', async () =>
    expect(await given(...authorized, sample.node_retired).when(recordIssuedCommand, signed)).toEqual(
      refusal('enrollment_refused'),
    ));
});

describe('a renewed certificate was signed', () => {
  const [renewal, issued] = renewed;
  const history = [...enrolled, sample.certificate_first_used, ...(renewal === undefined ? [] : [renewal])];

  test('in force: certificate_issued alone', async () =>
    expect(await given(...history).when(recordIssuedCommand, signedAgain)).toEqual([issued]));

  test.each<[string, FleetEvent]>([
    ['revoked', make('certificates_revoked', { certificate_ids: [SECOND_SERIAL] })],
    ['superseded', make('certificates_revoked', { certificate_ids: [SECOND_SERIAL], reason: 'superseded' })],
    ['of a node retired', sample.node_retired],
  ])('%s before it was signed: refused as unknown', async (_, event) =>
    expect(await given(...history, event).when(recordIssuedCommand, signedAgain)).toEqual(
      refusal('certificate_unknown'),
    ),
  );

  test('authorised by the old CA, signed while the new one issues: certificate_issued', async () =>
    expect(await given(...enrolled, ofOldCa, ...issuing).when(recordIssuedCommand, signedAgain)).toEqual([issued]));

  test('authorised by the old CA, signed after the rotation: refused as unknown', async () => {
    const completed = make('ca_rotation_completed', { revoked_certificate_ids: [SERIAL, SECOND_SERIAL] });
    const history = given(...enrolled, ofOldCa, ...issuing, completed);
    expect(await history.when(recordIssuedCommand, signedAgain)).toEqual(refusal('certificate_unknown'));
  });
});
