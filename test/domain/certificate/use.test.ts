import { describe, expect, test } from 'vitest';
import { recordFirstUseCommand, revokeCertificatesCommand } from '../../../src/commands/certificate.ts';
import { MOST_REVOKED } from '../../../src/domain/certificate/events.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import {
  CERTIFICATE_LIFETIME_MS,
  digest,
  enrolled,
  FINGERPRINT,
  forOtherNode,
  make,
  NODE,
  OTHER_NODE,
  provisioned,
  renewed,
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

describe('a certificate that came after others is used for the first time', () => {
  const THIRD_SERIAL = '0d'.repeat(16);
  const third = make('certificate_authorized', { certificate_id: THIRD_SERIAL, replaces_id: SERIAL });
  const thirdIssued = make('certificate_issued', { certificate_id: THIRD_SERIAL, fingerprint: digest('f4') });
  const history = [...enrolled, sample.certificate_first_used, ...renewed, third, thirdIssued];
  const usedSecond = make('certificate_first_used', {
    certificate_id: SECOND_SERIAL,
    fingerprint: SECOND_FINGERPRINT,
  });
  const usedThird = make('certificate_first_used', { certificate_id: THIRD_SERIAL, fingerprint: digest('f4') });
  const superseded = (...certificate_ids: string[]) =>
    make('certificates_revoked', { certificate_ids, reason: 'superseded' });

  test('the newest: every older one is revoked with it, unused siblings too', async () =>
    expect(await given(...history).when(recordFirstUseCommand, { fingerprint: digest('f4') })).toEqual([
      usedThird,
      superseded(SERIAL, SECOND_SERIAL),
    ]));

  test('not the newest: only those before it are revoked', async () =>
    expect(await given(...history).when(recordFirstUseCommand, { fingerprint: SECOND_FINGERPRINT })).toEqual([
      usedSecond,
      superseded(SERIAL),
    ]));

  test('the newest after that: the other one is revoked', async () =>
    expect(
      await given(...history, usedSecond, superseded(SERIAL)).when(recordFirstUseCommand, {
        fingerprint: digest('f4'),
      }),
    ).toEqual([usedThird, superseded(SECOND_SERIAL)]));

  test('an older one that is not signed yet: revoked too', async () =>
    expect(
      await given(...enrolled, ...renewed.slice(0, 1), third, thirdIssued).when(recordFirstUseCommand, {
        fingerprint: digest('f4'),
      }),
    ).toEqual([usedThird, superseded(SERIAL, SECOND_SERIAL)]));

  test('older ones are revoked already: certificate_first_used alone', async () =>
    expect(
      await given(...enrolled, ...renewed, sample.certificates_revoked).when(recordFirstUseCommand, {
        fingerprint: SECOND_FINGERPRINT,
      }),
    ).toEqual([usedSecond]));

  test('the old one until then: no new event, it stays in force', async () =>
    expect(await given(...history).when(recordFirstUseCommand, { fingerprint: FINGERPRINT })).toEqual([]));

  test("another node's: stay in force", async () => {
    const other = forOtherNode(enrolled);
    expect(await given(...enrolled, ...other).when(recordFirstUseCommand, { fingerprint: SECOND_FINGERPRINT })).toEqual(
      [
        make('certificate_first_used', {
          certificate_id: SECOND_SERIAL,
          node_id: OTHER_NODE,
          fingerprint: SECOND_FINGERPRINT,
        }),
      ],
    );
  });
});

describe('one certificate is revoked', () => {
  const revoke = (certificate_id: string, node_id = NODE) => ({ node_id, certificate_id });
  const two = [...enrolled, ...renewed];

  test('one of two: certificates_revoked names it alone', async () =>
    expect(await given(...two).when(revokeCertificatesCommand, revoke(SECOND_SERIAL))).toEqual([
      make('certificates_revoked', { certificate_ids: [SECOND_SERIAL] }),
    ]));

  test('revoked before: no new event', async () =>
    expect(await given(...two, sample.certificates_revoked).when(revokeCertificatesCommand, revoke(SERIAL))).toEqual(
      [],
    ));

  test('unknown: refused', async () =>
    expect(await given(...enrolled).when(revokeCertificatesCommand, revoke(SECOND_SERIAL))).toEqual(
      refusal('certificate_not_found', { certificate: SECOND_SERIAL }),
    ));

  test("another node's: refused", async () =>
    expect(
      await given(...enrolled, ...forOtherNode(enrolled)).when(revokeCertificatesCommand, revoke(SECOND_SERIAL)),
    ).toEqual(refusal('certificate_not_found', { certificate: SECOND_SERIAL })));
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

describe('more certificates than one event revokes are in force', () => {
  const newest = 'ff'.repeat(16);
  const others = Array.from({ length: 2 * MOST_REVOKED }, (_, i) => (0x1000 + i).toString(16).padStart(32, '0'));
  const renewal = (certificate_id: string) =>
    make('certificate_authorized', { certificate_id, cause: 'renewal', secret_sha256: null, secret_expires_at: null });
  const history = () =>
    others
      .reduce((so, certificate_id) => so.and(renewal(certificate_id)), given(...enrolled))
      .and(renewal(newest), make('certificate_issued', { certificate_id: newest, fingerprint: SECOND_FINGERPRINT }));
  const revokedIn = (events: readonly FleetEvent[]) =>
    events.flatMap(({ type, data }) => (type === 'certificates_revoked' ? [data.certificate_ids] : []));

  test('the newest is used: three events revoke every other one', async () => {
    const events = await history().when(recordFirstUseCommand, { fingerprint: SECOND_FINGERPRINT });
    const revoked = revokedIn(events as FleetEvent[]);
    expect(revoked.map(({ length }) => length)).toEqual([MOST_REVOKED, MOST_REVOKED, 1]);
    expect(new Set(revoked.flat())).toEqual(new Set([SERIAL, ...others]));
  });

  test('an operator revokes them: three events name every one', async () => {
    const revoked = revokedIn((await history().when(revokeCertificatesCommand, { node_id: NODE })) as FleetEvent[]);
    expect(revoked.map(({ length }) => length)).toEqual([MOST_REVOKED, MOST_REVOKED, 2]);
    expect(new Set(revoked.flat())).toEqual(new Set([SERIAL, newest, ...others]));
  });
});
