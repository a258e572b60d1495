import { describe, expect, test } from 'vitest';
import { recordFirstUseCommand, revokeCertificatesCommand } from '../../../src/commands/certificate.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import {
  CERTIFICATE_LIFETIME_MS,
  enrolled,
  FINGERPRINT,
  forOtherNode,
  make,
  NODE,
  OTHER_NODE,
  provisioned,
  SECOND_FINGERPRINT,
  SECOND_SERIAL,
  SERIAL,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';
import { enrollAgain, signedAgain } from './fixtures.ts';

const secondAuthorized: FleetEvent = {
  type: 'certificate_authorized',
  data: { ...sample.certificate_authorized.data, ...enrollAgain },
};

describe('a certificate is used for the first time', () => {
  const use = { fingerprint: FINGERPRINT };

  test('in force: certificate_first_used', async () =>
    expect(await given(...enrolled).when(recordFirstUseCommand, use)).toEqual([sample.certificate_first_used]));

  test('repeated: no new event', async () =>
    expect(await given(...enrolled, sample.certificate_first_used).when(recordFirstUseCommand, use)).toEqual([]));

  test('1 ms before it ends: certificate_first_used', async () =>
    expect(
      await given(...enrolled)
        .after(CERTIFICATE_LIFETIME_MS - 1)
        .when(recordFirstUseCommand, use),
    ).toEqual([sample.certificate_first_used]));

  test('expired: refused', async () =>
    expect(
      await given(...enrolled)
        .after(CERTIFICATE_LIFETIME_MS)
        .when(recordFirstUseCommand, use),
    ).toEqual(refusal('certificate_expired')));

  test('expired by the database, not by the log: the database counts', async () =>
    expect(
      await given(...enrolled)
        .recordingAt(Date.UTC(2099, 0))
        .when(recordFirstUseCommand, use),
    ).toEqual([sample.certificate_first_used]));

  test('unknown: refused', async () =>
    expect(await given(...enrolled).when(recordFirstUseCommand, { fingerprint: SECOND_FINGERPRINT })).toEqual(
      refusal('certificate_unknown'),
    ));

  test('authorised and never issued: refused', async () =>
    expect(await given(...provisioned, sample.certificate_authorized).when(recordFirstUseCommand, use)).toEqual(
      refusal('certificate_unknown'),
    ));

  test('revoked: refused', async () =>
    expect(await given(...enrolled, sample.certificates_revoked).when(recordFirstUseCommand, use)).toEqual(
      refusal('certificate_unknown'),
    ));

  test('revoked and expired: refused as unknown', async () =>
    expect(
      await given(...enrolled, sample.certificates_revoked)
        .after(CERTIFICATE_LIFETIME_MS)
        .when(recordFirstUseCommand, use),
    ).toEqual(refusal('certificate_unknown')));
});

describe('certificates are revoked', () => {
  const revoke = { node_id: NODE };

  test('one issued: certificates_revoked names it', async () =>
    expect(await given(...enrolled).when(revokeCertificatesCommand, revoke)).toEqual([sample.certificates_revoked]));

  test('authorised and not signed yet: revoked too', async () =>
    expect(await given(...provisioned, sample.certificate_authorized).when(revokeCertificatesCommand, revoke)).toEqual([
      sample.certificates_revoked,
    ]));

  test('two, one of them revoked before: certificates_revoked names the other', async () =>
    expect(
      await given(...enrolled, sample.certificates_revoked, secondAuthorized).when(revokeCertificatesCommand, revoke),
    ).toEqual([make('certificates_revoked', { certificate_ids: [SECOND_SERIAL] })]));

  test('two in force: one event names both', async () =>
    expect(
      await given(
        ...enrolled,
        secondAuthorized,
        make('certificate_issued', {
          certificate_id: SECOND_SERIAL,
          fingerprint: signedAgain.fingerprint,
          certificate_pem: signedAgain.certificate_pem,
        }),
      ).when(revokeCertificatesCommand, revoke),
    ).toEqual([make('certificates_revoked', { certificate_ids: [SERIAL, SECOND_SERIAL] })]));

  test("another node's: stay in force", async () => {
    const history = given(...enrolled, ...forOtherNode(enrolled));
    expect(await history.when(revokeCertificatesCommand, revoke)).toEqual([sample.certificates_revoked]);
    expect(await history.when(recordFirstUseCommand, { fingerprint: SECOND_FINGERPRINT })).toEqual([
      make('certificate_first_used', {
        certificate_id: SECOND_SERIAL,
        node_id: OTHER_NODE,
        fingerprint: SECOND_FINGERPRINT,
      }),
    ]);
  });

  test('repeated: no new event', async () =>
    expect(await given(...enrolled, sample.certificates_revoked).when(revokeCertificatesCommand, revoke)).toEqual([]));

  test('none yet: no event', async () =>
    expect(await given(...provisioned).when(revokeCertificatesCommand, revoke)).toEqual([]));

  test('unknown node: refused', async () =>
    expect(await given().when(revokeCertificatesCommand, revoke)).toEqual(refusal('node_unknown', { node: NODE })));
});
