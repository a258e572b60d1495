import { describe, expect, test } from 'vitest';
import {
  authorizeEnrollmentCommand,
  recordFirstUseCommand,
  recordIssuedCommand,
} from '../../../src/commands/certificate.ts';
import { armReenrollmentCommand } from '../../../src/commands/node.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import {
  CA,
  CERTIFICATE_LIFETIME_MS,
  enrolled,
  issuing,
  MINUTE,
  make,
  NEW_CA,
  NODE,
  provisioned,
  SECOND_FINGERPRINT,
  SECOND_SECRET,
  SECOND_SERIAL,
  SERIAL,
  START,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';
import { enrollAgain, signedAgain } from '../certificate/fixtures.ts';

const arm = { node_id: NODE, secret_sha256: SECOND_SECRET, ttl_ms: 15 * MINUTE, ca_sha256s: [NEW_CA, CA] };
const armed = make('node_enrollment_secret_armed', {
  secret_sha256: SECOND_SECRET,
  expires_at: START + 15 * MINUTE,
  ca_sha256s: [NEW_CA, CA],
});
const authorized = make('certificate_authorized', {
  ...enrollAgain,
  cause: 'reenrollment',
  secret_expires_at: START + 15 * MINUTE,
});
const { tbs_sha256: _, ...signature } = signedAgain;
const issued = make('certificate_issued', signature);

/** Statuses of a node that was enrolled and is not retired. */
const statuses: readonly [string, readonly FleetEvent[]][] = [
  ['active', []],
  ['unhealthy', [sample.node_became_unhealthy]],
  ['draining', [sample.node_drain_started]],
  ['lost', [sample.node_lost]],
];

describe('a secret is armed for a node that was enrolled', () => {
  test.each(statuses)(
    '%s: node_enrollment_secret_armed, with the CAs that are carried to the host',
    async (_, status) => expect(await given(...enrolled, ...status).when(armReenrollmentCommand, arm)).toEqual([armed]),
  );

  test("all of its certificates have ended: node_enrollment_secret_armed, from the database's clock on", async () => {
    const now = START + 2 * CERTIFICATE_LIFETIME_MS;
    expect(
      await given(...enrolled)
        .at(now)
        .when(armReenrollmentCommand, arm),
    ).toEqual([make('node_enrollment_secret_armed', { ...armed.data, expires_at: now + 15 * MINUTE })]);
  });

  test('repeated: no new event', async () =>
    expect(await given(...enrolled, armed).when(armReenrollmentCommand, arm)).toEqual([]));

  test('while an earlier one is armed: another node_enrollment_secret_armed', async () =>
    expect(await given(...enrolled, sample.node_enrollment_secret_armed).when(armReenrollmentCommand, arm)).toEqual([
      armed,
    ]));

  test("a bundle without the CA of the gateways' certificates: refused", async () =>
    expect(
      await given(...enrolled, ...issuing, sample.ca_rotation_completed).when(armReenrollmentCommand, {
        ...arm,
        ca_sha256s: [CA],
      }),
    ).toEqual(refusal('ca_bundle_outdated', { ca_sha256: NEW_CA })));

  test.each<[string, readonly FleetEvent[], ReturnType<typeof refusal>]>([
    ['unknown', [], refusal('node_unknown', { node: NODE })],
    ['being provisioned', provisioned, refusal('node_not_enrolled', { node_id: NODE })],
    ['given up', [...provisioned, sample.node_provisioning_failed], refusal('node_not_enrolled', { node_id: NODE })],
    ['retired', [...enrolled, sample.node_retired], refusal('node_retired', { node_id: NODE })],
  ])('%s: refused', async (_, events, refused) =>
    expect(await given(...events).when(armReenrollmentCommand, arm)).toEqual(refused),
  );
});

describe('it is redeemed', () => {
  test.each(statuses)('%s: certificate_authorized as a reenrollment', async (_, status) =>
    expect(await given(...enrolled, ...status, armed).when(authorizeEnrollmentCommand, enrollAgain)).toEqual([
      authorized,
    ]),
  );

  test.each(statuses)('%s, signed: certificate_issued alone, the node keeps its status', async (_, status) =>
    expect(await given(...enrolled, ...status, armed, authorized).when(recordIssuedCommand, signedAgain)).toEqual([
      issued,
    ]),
  );

  test.each(statuses)('%s, used: the older certificate is revoked', async (_, status) =>
    expect(
      await given(...enrolled, ...status, armed, authorized, issued).when(recordFirstUseCommand, {
        fingerprint: SECOND_FINGERPRINT,
      }),
    ).toEqual([
      make('certificate_first_used', { certificate_id: SECOND_SERIAL, fingerprint: SECOND_FINGERPRINT }),
      make('certificates_revoked', { certificate_ids: [SERIAL], reason: 'superseded' }),
    ]),
  );

  test.each<[string, readonly FleetEvent[]]>([
    ['retired since', [armed, sample.node_retired]],
    ['retired since, authorised before', [armed, authorized, issued, sample.node_retired]],
  ])('%s: refused', async (_, events) =>
    expect(
      await given(...enrolled, ...events).when(authorizeEnrollmentCommand, {
        ...enrollAgain,
        certificate_id: '0d'.repeat(16),
      }),
    ).toEqual(refusal('enrollment_refused')),
  );

  test('by a gateway whose CA may not issue: refused, says which may', async () =>
    expect(
      await given(...enrolled, sample.ca_initialized, armed).when(authorizeEnrollmentCommand, {
        ...enrollAgain,
        issuer_ca_sha256: NEW_CA,
      }),
    ).toEqual(refusal('issuer_not_current', { issuer_ca_sha256: CA })));

  test('a wrong secret at such a gateway: learns nothing of CAs', async () =>
    expect(
      await given(...enrolled, sample.ca_initialized).when(authorizeEnrollmentCommand, {
        ...enrollAgain,
        issuer_ca_sha256: NEW_CA,
      }),
    ).toEqual(refusal('enrollment_refused')));
});
