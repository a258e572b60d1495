import { describe, expect, test } from 'vitest';
import { armSecretCommand, failProvisioningCommand, retryProvisioningCommand } from '../../../src/commands/node.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import { ENROLLMENT_SECRET_TTL_MS } from '../../../src/domain/node/provision.ts';
import {
  CA,
  enrolled,
  issuing,
  MINUTE,
  make,
  NEW_CA,
  NODE,
  provisioned,
  SECOND_SECRET,
  SECRET,
  START,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const ends = START + 15 * MINUTE;
const armSecond = make('node_enrollment_secret_armed', { secret_sha256: SECOND_SECRET, expires_at: ends + MINUTE });

test('an enrolment secret lasts fifteen minutes', () => expect(ENROLLMENT_SECRET_TTL_MS).toBe(15 * MINUTE));

describe('a secret is armed', () => {
  const arm = { node_id: NODE, secret_sha256: SECRET, ttl_ms: 15 * MINUTE, ca_sha256s: [] };
  const requested = sample.node_provisioning_requested;

  test('provisioning: ends that long after the database says now', async () =>
    expect(
      await given(requested)
        .recordingAt(START + 5_000)
        .when(armSecretCommand, arm),
    ).toEqual([sample.node_enrollment_secret_armed]));

  test('repeated later: no new event, the end stays', async () =>
    expect(
      await given(requested, sample.node_enrollment_secret_armed).after(MINUTE).when(armSecretCommand, arm),
    ).toEqual([]));

  test('another is armed already: both are', async () =>
    expect(
      await given(requested, sample.node_enrollment_secret_armed)
        .after(MINUTE)
        .when(armSecretCommand, { ...arm, secret_sha256: SECOND_SECRET }),
    ).toEqual([armSecond]));

  const completed = make('ca_rotation_completed', { revoked_certificate_ids: [] });
  test.each<[string, readonly FleetEvent[], readonly string[], string | undefined]>([
    ['the only CA', [sample.ca_initialized], [CA], undefined],
    ['no CA', [sample.ca_initialized], [], CA],
    ['of an overlap the old CA alone: completing waits for the secret', issuing, [CA], undefined],
    ['of an overlap the new CA alone', issuing, [NEW_CA], CA],
    ['the CA of before a completed rotation', [...issuing, completed], [CA], NEW_CA],
    ['both CAs of a completed rotation', [...issuing, completed], [NEW_CA, CA], undefined],
  ])('the bundle holds %s: armed, or refused for the CA that it lacks', async (_, events, ca_sha256s, lacking) =>
    expect(await given(requested, ...events).when(armSecretCommand, { ...arm, ca_sha256s })).toEqual(
      lacking === undefined
        ? [make('node_enrollment_secret_armed', { ca_sha256s: [...ca_sha256s] })]
        : refusal('ca_bundle_outdated', { ca_sha256: lacking }),
    ),
  );

  test('unknown node: refused', async () =>
    expect(await given().when(armSecretCommand, arm)).toEqual(refusal('node_unknown', { node: NODE })));

  test('active: refused, says its status', async () =>
    expect(await given(...enrolled).when(armSecretCommand, arm)).toEqual(
      refusal('node_not_provisioning', { node_id: NODE, status: 'active' }),
    ));
});

describe('provisioning is given up', () => {
  const fail = { node_id: NODE };

  test('the only secret ended: node_provisioning_failed', async () =>
    expect(
      await given(...provisioned)
        .at(ends)
        .when(failProvisioningCommand, fail),
    ).toEqual([sample.node_provisioning_failed]));

  test('the only secret lasts 1 ms more: no event, says until when', async () => {
    const history = given(...provisioned).at(ends - 1);
    expect(await history.when(failProvisioningCommand, fail)).toEqual([]);
    expect(await history.reply(failProvisioningCommand, fail)).toEqual({ failed: false, expires_at: ends });
  });

  test('the second of two secrets lasts: no event, says until when', async () => {
    const history = given(...provisioned, armSecond).at(ends);
    expect(await history.when(failProvisioningCommand, fail)).toEqual([]);
    expect(await history.reply(failProvisioningCommand, fail)).toEqual({ failed: false, expires_at: ends + MINUTE });
  });

  test('both secrets ended: node_provisioning_failed', async () =>
    expect(
      await given(...provisioned, armSecond)
        .at(ends + MINUTE)
        .when(failProvisioningCommand, fail),
    ).toEqual([sample.node_provisioning_failed]));

  test('repeated: no new event, says failed', async () => {
    const history = given(...provisioned).at(ends);
    expect(await history.reply(failProvisioningCommand, fail)).toEqual({ failed: true });
    expect(await history.when(failProvisioningCommand, fail)).toEqual([]);
    expect(await history.reply(failProvisioningCommand, fail)).toEqual({ failed: true });
  });

  test('its server came up without an armed secret: node_provisioning_failed', async () =>
    expect(
      await given(sample.node_provisioning_requested, sample.node_server_running).when(failProvisioningCommand, fail),
    ).toEqual([sample.node_provisioning_failed]));

  test.each(['server_create_failed', 'server_vanished'] as const)(
    '%s: node_provisioning_failed at once, whatever is armed',
    async (reason) =>
      expect(await given(...provisioned).when(failProvisioningCommand, { ...fail, reason })).toEqual([
        make('node_provisioning_failed', { reason }),
      ]),
  );

  test('enrolled meanwhile, its server gone: refused, says its status', async () =>
    expect(await given(...enrolled).when(failProvisioningCommand, { ...fail, reason: 'server_vanished' })).toEqual(
      refusal('node_not_provisioning', { node_id: NODE, status: 'active' }),
    ));

  test('nothing armed yet: no event', async () =>
    expect(await given(sample.node_provisioning_requested).when(failProvisioningCommand, fail)).toEqual([]));

  test('secret redeemed, certificate still to be signed: no event while the secret lasts', async () =>
    expect(
      await given(...provisioned, sample.certificate_authorized)
        .at(ends - 1)
        .reply(failProvisioningCommand, fail),
    ).toEqual({ failed: false, expires_at: ends }));

  test('secret redeemed, never signed, ended: node_provisioning_failed', async () =>
    expect(
      await given(...provisioned, sample.certificate_authorized)
        .at(ends)
        .when(failProvisioningCommand, fail),
    ).toEqual([sample.node_provisioning_failed]));

  test('unknown node: refused', async () =>
    expect(await given().when(failProvisioningCommand, fail)).toEqual(refusal('node_unknown', { node: NODE })));

  test('enrolled meanwhile: refused, says its status', async () =>
    expect(
      await given(...enrolled)
        .at(ends)
        .when(failProvisioningCommand, fail),
    ).toEqual(refusal('node_not_provisioning', { node_id: NODE, status: 'active' })));
});

describe('provisioning is retried', () => {
  const retry = { node_id: NODE };

  test('failed: node_provisioning_retried', async () =>
    expect(await given(...provisioned, sample.node_provisioning_failed).when(retryProvisioningCommand, retry)).toEqual([
      sample.node_provisioning_retried,
    ]));

  test('repeated: refused, it is no longer failed', async () =>
    expect(
      await given(...provisioned, sample.node_provisioning_failed, sample.node_provisioning_retried).when(
        retryProvisioningCommand,
        retry,
      ),
    ).toEqual(refusal('node_not_failed', { node_id: NODE, provision_state: 'pending' })));

  test('awaiting enrolment: refused, says how far it is', async () =>
    expect(await given(...provisioned).when(retryProvisioningCommand, retry)).toEqual(
      refusal('node_not_failed', { node_id: NODE, provision_state: 'awaiting_enrollment' }),
    ));

  test('unknown node: refused', async () =>
    expect(await given().when(retryProvisioningCommand, retry)).toEqual(refusal('node_unknown', { node: NODE })));

  test('the secret of the failed attempt: cannot make the new one fail', async () => {
    const history = given(
      ...provisioned,
      sample.certificate_authorized,
      sample.node_provisioning_failed,
      sample.node_provisioning_retried,
    ).at(ends + MINUTE);
    expect(await history.when(failProvisioningCommand, { node_id: NODE })).toEqual([]);
  });
});
