import { describe, expect, test } from 'vitest';
import { authorizeEnrollmentCommand } from '../../../src/commands/certificate.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import {
  digest,
  enrolled,
  MINUTE,
  make,
  OTHER_NODE,
  OTHER_PUBLIC_KEY,
  provisioned,
  SECOND_SECRET,
  SECOND_SERIAL,
  SERIAL,
  START,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';
import { enroll, enrollAgain } from './fixtures.ts';

const authorized = sample.certificate_authorized;
const secretEnds = START + 15 * MINUTE;
const armSecond = make('node_enrollment_secret_armed', { secret_sha256: SECOND_SECRET, expires_at: secretEnds + 5 });
const refused = refusal('enrollment_refused');

describe('an enrolment secret is redeemed', () => {
  test('armed: certificate_authorized, and the gateway is to sign', async () => {
    expect(await given(...provisioned).when(authorizeEnrollmentCommand, enroll)).toEqual([authorized]);
    expect(await given(...provisioned).reply(authorizeEnrollmentCommand, enroll)).toEqual({
      certificate_id: SERIAL,
      certificate_pem: null,
    });
  });

  test('1 ms before the secret ends: certificate_authorized', async () => {
    const atTheEnd = { ...enroll, not_before: secretEnds - 1 };
    const history = given(...provisioned).at(secretEnds - 1);
    expect(await history.when(authorizeEnrollmentCommand, atTheEnd)).toEqual([
      make('certificate_authorized', { not_before: secretEnds - 1 }),
    ]);
  });

  test('when the secret ends: refused', async () =>
    expect(
      await given(...provisioned)
        .at(secretEnds)
        .when(authorizeEnrollmentCommand, { ...enroll, not_before: secretEnds }),
    ).toEqual(refused));

  test('the agent booted before anybody recorded its server: certificate_authorized', async () =>
    expect(
      await given(sample.node_provisioning_requested, sample.node_enrollment_secret_armed).when(
        authorizeEnrollmentCommand,
        enroll,
      ),
    ).toEqual([authorized]));

  test('several armed, the older one redeemed: certificate_authorized with that one', async () =>
    expect(await given(...provisioned, armSecond).when(authorizeEnrollmentCommand, enroll)).toEqual([authorized]));

  test('several armed, the newer one redeemed: certificate_authorized with its end', async () =>
    expect(await given(...provisioned, armSecond).when(authorizeEnrollmentCommand, enrollAgain)).toEqual([
      {
        type: 'certificate_authorized',
        data: { ...authorized.data, ...enrollAgain, secret_expires_at: secretEnds + 5 },
      },
    ]));

  test('several armed, the older one redeemed before: it disarmed the rest', async () =>
    expect(await given(...provisioned, armSecond, authorized).when(authorizeEnrollmentCommand, enrollAgain)).toEqual(
      refused,
    ));

  test('armed after another was redeemed: a second certificate_authorized', async () =>
    expect(await given(...provisioned, authorized, armSecond).when(authorizeEnrollmentCommand, enrollAgain)).toEqual([
      {
        type: 'certificate_authorized',
        data: { ...authorized.data, ...enrollAgain, secret_expires_at: secretEnds + 5 },
      },
    ]));

  test.each<[string, readonly FleetEvent[], Partial<typeof enroll>]>([
    ['unknown node', [], {}],
    ['wrong secret', provisioned, { secret_sha256: digest('bad') }],
    ["another node's secret", provisioned, { node_id: OTHER_NODE }],
    ['nothing armed', [sample.node_provisioning_requested], {}],
    ['used secret, another key', [...provisioned, authorized], { public_key_spki: OTHER_PUBLIC_KEY }],
    ['used secret, another key, certificate issued', enrolled, { public_key_spki: OTHER_PUBLIC_KEY }],
    ['failed node', [...provisioned, sample.node_provisioning_failed], {}],
    ['active node', [...enrolled], { secret_sha256: SECOND_SECRET }],
  ])('%s: the same refusal, without details', async (_, history, difference) =>
    expect(await given(...history).when(authorizeEnrollmentCommand, { ...enroll, ...difference })).toEqual(refused),
  );
});

describe('clocks are apart', () => {
  const redeem = (history: ReturnType<typeof given>, not_before = START) =>
    history.when(authorizeEnrollmentCommand, { ...enroll, not_before });

  test.each([60_000, -60_000])('gateway by %d ms: certificate_authorized', async (skew) =>
    expect(await redeem(given(...provisioned), START + skew)).toEqual([
      make('certificate_authorized', { not_before: START + skew }),
    ]),
  );

  test.each([60_001, -60_001])('gateway by %d ms: refused, says which and how far', async (skew) =>
    expect(await redeem(given(...provisioned), START + skew)).toEqual(
      refusal('clock_unsafe', { clock: 'gateway', skew_ms: skew, until: 'it is set' }),
    ),
  );

  test('the log is 60 s ahead of the database: certificate_authorized', async () =>
    expect(await redeem(given(...provisioned).recordingAt(START + 60_000))).toEqual([authorized]));

  test('the log is 60.001 s ahead of the database: refused, says how far and until when', async () =>
    expect(await redeem(given(...provisioned).recordingAt(START + 60_001))).toEqual(
      refusal('clock_unsafe', { clock: 'log', skew_ms: 60_001, until: new Date(START + 1).toISOString() }),
    ));

  test('at that time: certificate_authorized', async () =>
    expect(
      await redeem(
        given(...provisioned)
          .after(1)
          .recordingAt(START + 60_001),
      ),
    ).toEqual([authorized]));

  test('with a wrong secret: learns nothing of the clocks', async () =>
    expect(
      await given(...provisioned)
        .recordingAt(START + 3_600_000)
        .when(authorizeEnrollmentCommand, { ...enroll, secret_sha256: digest('bad') }),
    ).toEqual(refused));
});

describe('the answer was lost and the same secret comes with the same key', () => {
  const again = { ...enroll, certificate_id: SECOND_SERIAL, tbs_sha256: digest('7b6'), not_before: START + 1_000 };
  const told = {
    certificate_id: SERIAL,
    not_before: authorized.data.not_before,
    not_after: authorized.data.not_after,
    issuer_ca_sha256: authorized.data.issuer_ca_sha256,
    tbs_sha256: authorized.data.tbs_sha256,
  };

  test('not signed yet: no new event, told what is to be signed', async () => {
    expect(await given(...provisioned, authorized).when(authorizeEnrollmentCommand, again)).toEqual([]);
    expect(await given(...provisioned, authorized).reply(authorizeEnrollmentCommand, again)).toEqual({
      ...told,
      certificate_pem: null,
    });
  });

  test('issued: no new event, told that certificate', async () => {
    expect(await given(...enrolled).when(authorizeEnrollmentCommand, again)).toEqual([]);
    expect(await given(...enrolled).reply(authorizeEnrollmentCommand, again)).toEqual({
      ...told,
      certificate_pem: sample.certificate_issued.data.certificate_pem,
    });
  });

  test('1 ms before the secret ends: told that certificate', async () =>
    expect(
      await given(...enrolled)
        .at(secretEnds - 1)
        .when(authorizeEnrollmentCommand, again),
    ).toEqual([]));

  test('after the secret ended: refused', async () =>
    expect(
      await given(...enrolled)
        .at(secretEnds)
        .when(authorizeEnrollmentCommand, again),
    ).toEqual(refused));

  test.each<[string, readonly FleetEvent[]]>([
    ['used', [...enrolled, sample.certificate_first_used]],
    ['revoked', [...enrolled, sample.certificates_revoked]],
    ['revoked before it was signed', [...provisioned, authorized, sample.certificates_revoked]],
    ['of a node given up', [...provisioned, authorized, sample.node_provisioning_failed]],
  ])('a certificate %s: refused', async (_, history) =>
    expect(await given(...history).when(authorizeEnrollmentCommand, again)).toEqual(refused),
  );

  test('the certificate of an earlier secret, after another enrolled the node: told that certificate', async () => {
    const second = { ...authorized.data, ...enrollAgain, public_key_spki: OTHER_PUBLIC_KEY };
    const history = given(
      ...provisioned,
      authorized,
      armSecond,
      { type: 'certificate_authorized', data: second },
      make('certificate_issued', { certificate_id: SECOND_SERIAL }),
      make('node_enrolled', { certificate_id: SECOND_SERIAL }),
    );
    expect(await history.reply(authorizeEnrollmentCommand, again)).toEqual({ ...told, certificate_pem: null });
  });

  test('the node is told by its id, not by its key: refused for another node', async () =>
    expect(await given(...enrolled).when(authorizeEnrollmentCommand, { ...again, node_id: OTHER_NODE })).toEqual(
      refused,
    ));
});
