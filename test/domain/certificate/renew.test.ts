import { describe, expect, test } from 'vitest';
import { authorizeRenewalCommand } from '../../../src/commands/certificate.ts';
import {
  FREE_RENEWALS,
  MOST_UNUSED,
  RENEWAL_INTERVAL_MS,
  type Renewal,
  type RenewalReason,
  renewalReason,
} from '../../../src/domain/certificate/renew.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import {
  begun,
  CA,
  CERTIFICATE_LIFETIME_MS,
  digest,
  enrolled,
  FINGERPRINT,
  issuing,
  make,
  moved,
  NEW_CA,
  NODE,
  OTHER_PUBLIC_KEY,
  provisioned,
  renewed,
  SECOND_FINGERPRINT,
  SECOND_SERIAL,
  SERIAL,
  START,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const ends = START + CERTIFICATE_LIFETIME_MS;
/** From the next ms on, less than a third of the certificate's life is left. */
const third = START + (CERTIFICATE_LIFETIME_MS / 3) * 2;
const notDue = refusal('renewal_not_due', { due_at: new Date(third).toISOString() });

/** The agent renews its first certificate for a key of its own. */
function renewalAt(now: number, changes: Partial<Renewal> = {}): Renewal {
  return {
    fingerprint: FINGERPRINT,
    certificate_id: SECOND_SERIAL,
    public_key_spki: OTHER_PUBLIC_KEY,
    tbs_sha256: digest('7b6'),
    issuer_ca_sha256: CA,
    not_before: now,
    not_after: now + CERTIFICATE_LIFETIME_MS,
    ...changes,
  };
}

function authorizedBy({ fingerprint: _, ...renewal }: Renewal): FleetEvent {
  return make('certificate_authorized', {
    ...renewal,
    cause: 'renewal',
    secret_sha256: null,
    secret_expires_at: null,
    replaces_id: SERIAL,
  });
}

/** The agent renews at a time: its renewal, and what came of it. */
async function renew(events: readonly FleetEvent[], now: number, changes: Partial<Renewal> = {}) {
  const renewal = renewalAt(now, changes);
  const outcome = await given(...events)
    .at(now)
    .when(authorizeRenewalCommand, renewal);
  return { outcome, authorized: [authorizedBy(renewal)] };
}

describe('why a certificate is due', () => {
  const certificate = { not_before: START, not_after: ends, issuer_ca_sha256: CA };
  const ca = (issuing_ca_sha256: string) => ({
    name: 'fleet' as const,
    current_ca_sha256: CA,
    issuing_ca_sha256,
    rotation_id: null,
    next_ca_sha256: null,
    trusted: [],
    initialized_at: START,
  });

  test.each<[string, string | undefined, number, RenewalReason | null]>([
    ['just issued', CA, START, null],
    ['a third is left', CA, third, null],
    ['less than a third is left', CA, third + 1, 'lifetime'],
    ['another CA issues', NEW_CA, START, 'issuer'],
    ['another CA issues and less than a third is left', NEW_CA, third + 1, 'issuer'],
    ['no CA is known', undefined, START, null],
    ['no CA is known and less than a third is left', undefined, third + 1, 'lifetime'],
  ])('%s', (_, issuer, now, reason) =>
    expect(renewalReason(certificate, issuer === undefined ? undefined : ca(issuer), now)).toBe(reason),
  );
});

describe('a certificate is renewed', () => {
  test('less than a third of its life is left: certificate_authorized, which names the one it replaces', async () => {
    const { outcome, authorized } = await renew(enrolled, third + 1);
    expect(outcome).toEqual(authorized);
  });

  test('the gateway is to sign it', async () =>
    expect(
      await given(...enrolled)
        .at(third + 1)
        .reply(authorizeRenewalCommand, renewalAt(third + 1)),
    ).toEqual({ certificate_id: SECOND_SERIAL, certificate_pem: null }));

  test('a third is left: refused, says when it is due', async () =>
    expect((await renew(enrolled, third)).outcome).toEqual(notDue));

  test('1 ms before it ends: certificate_authorized', async () => {
    const { outcome, authorized } = await renew(enrolled, ends - 1);
    expect(outcome).toEqual(authorized);
  });

  test('it has ended: refused', async () =>
    expect((await renew(enrolled, ends)).outcome).toEqual(refusal('certificate_expired')));

  test('a rotation has begun, the old CA still issues: refused', async () =>
    expect((await renew([...enrolled, ...begun], START)).outcome).toEqual(notDue));

  test('the new CA issues: certificate_authorized of the new CA, long before its end', async () => {
    const { outcome, authorized } = await renew([...enrolled, ...issuing], START, { issuer_ca_sha256: NEW_CA });
    expect(outcome).toEqual(authorized);
  });

  test.each<[string, readonly FleetEvent[]]>([
    ['active', []],
    ['never used', []],
    ['unhealthy', [sample.node_became_unhealthy]],
    ['draining', [sample.node_drain_started]],
    ['lost', [sample.node_lost]],
    ['in conflict', [sample.certificate_conflict_seen]],
  ])('by a node that is %s: certificate_authorized', async (_, status) => {
    const { outcome, authorized } = await renew([...enrolled, ...status], third + 1);
    expect(outcome).toEqual(authorized);
  });

  test.each<[string, readonly FleetEvent[], Partial<Renewal>]>([
    ['retired node', [...enrolled, sample.node_retired], {}],
    ['revoked certificate', [...enrolled, sample.certificates_revoked], {}],
    ['replaced certificate', [...enrolled, ...issuing, ...moved], {}],
    ['unknown fingerprint', enrolled, { fingerprint: SECOND_FINGERPRINT }],
    ['certificate that was never issued', [...provisioned, sample.certificate_authorized], {}],
  ])('%s: refused', async (_, events, changes) =>
    expect((await renew(events, third + 1, changes)).outcome).toEqual(refusal('certificate_unknown')),
  );
});

describe('a gateway has not heard which CA issues', () => {
  test.each<[string, readonly FleetEvent[], string, string]>([
    ['the old one while the new one issues', issuing, CA, NEW_CA],
    ['the new one before it issues', begun, NEW_CA, CA],
    ['an aborted one', [...issuing, sample.ca_rotation_aborted], NEW_CA, CA],
    ['the old one after the rotation', [...issuing, sample.ca_rotation_completed], CA, NEW_CA],
    ['a strange one', issuing, digest('cc'), NEW_CA],
  ])('%s: refused, says which', async (_, events, asked, current) => {
    // The certificate in use is one that stays in force throughout.
    const completed = events.some(({ type }) => type === 'ca_rotation_completed');
    const used = completed ? [...issuing, ...renewed, ...events.slice(issuing.length)] : events;
    const fingerprint = completed ? SECOND_FINGERPRINT : FINGERPRINT;
    const changes = { fingerprint, issuer_ca_sha256: asked, certificate_id: '0d'.repeat(16) };
    expect((await renew([...enrolled, ...used], third + 1, changes)).outcome).toEqual(
      refusal('issuer_not_current', { issuer_ca_sha256: current }),
    );
  });

  test('no CA is known: whatever the gateway has', async () => {
    const { outcome, authorized } = await renew(enrolled, third + 1, { issuer_ca_sha256: digest('cc') });
    expect(outcome).toEqual(authorized);
  });
});

describe('clocks are apart', () => {
  test('gateway by 60.001 s: refused, says which and how far', async () =>
    expect((await renew(enrolled, third + 1, { not_before: third + 1 + 60_001 })).outcome).toEqual(
      refusal('clock_unsafe', { clock: 'gateway', skew_ms: 60_001, until: 'it is set' }),
    ));

  test('the log is 60.001 s ahead of the database: refused, says until when', async () =>
    expect(
      await given(...enrolled)
        .at(third + 1)
        .recordingAt(third + 60_002)
        .when(authorizeRenewalCommand, renewalAt(third + 1)),
    ).toEqual(refusal('clock_unsafe', { clock: 'log', skew_ms: 60_001, until: new Date(third + 2).toISOString() })));

  test('an answer was lost before they were: told the certificate that was given', async () =>
    expect(
      await given(...enrolled, authorizedBy(renewalAt(third + 1)))
        .at(third + 1)
        .recordingAt(third + 3_600_000)
        .when(authorizeRenewalCommand, renewalAt(third + 2)),
    ).toEqual([]));
});

describe('the answer was lost and the same key comes again', () => {
  const first = renewalAt(third + 1);
  const again = renewalAt(third + 2, { certificate_id: '0d'.repeat(16), tbs_sha256: digest('7b7') });
  const authorized = [...enrolled, authorizedBy(first)];
  const issued = make('certificate_issued', { certificate_id: SECOND_SERIAL, fingerprint: SECOND_FINGERPRINT });
  const told = {
    certificate_id: SECOND_SERIAL,
    not_before: first.not_before,
    not_after: first.not_after,
    issuer_ca_sha256: CA,
    tbs_sha256: first.tbs_sha256,
  };
  const at = (events: readonly FleetEvent[]) => given(...events).at(third + 2);

  test('not signed yet: no new event, told what is to be signed', async () => {
    expect(await at(authorized).when(authorizeRenewalCommand, again)).toEqual([]);
    expect(await at(authorized).reply(authorizeRenewalCommand, again)).toEqual({ ...told, certificate_pem: null });
  });

  test('issued: no new event, told that certificate', async () => {
    expect(await at([...authorized, issued]).when(authorizeRenewalCommand, again)).toEqual([]);
    expect(await at([...authorized, issued]).reply(authorizeRenewalCommand, again)).toEqual({
      ...told,
      certificate_pem: issued.data.certificate_pem,
    });
  });

  test.each<[string, readonly FleetEvent[], Partial<Renewal>]>([
    ['revoked', [issued, make('certificates_revoked', { certificate_ids: [SECOND_SERIAL] })], {}],
    ['of a CA that no longer issues', [issued, ...issuing], { issuer_ca_sha256: NEW_CA }],
  ])('%s: a new certificate_authorized', async (_, events, changes) =>
    expect(await at([...authorized, ...events]).when(authorizeRenewalCommand, { ...again, ...changes })).toEqual([
      authorizedBy({ ...again, ...changes }),
    ]),
  );

  test('another key: a new certificate_authorized', async () => {
    const other = { ...again, public_key_spki: Buffer.from('a third key').toString('base64') };
    expect(await at(authorized).when(authorizeRenewalCommand, other)).toEqual([authorizedBy(other)]);
  });
});

describe('renewed again and again, and none was used', () => {
  const wishes = Array.from({ length: FREE_RENEWALS }, (_, index) =>
    renewalAt(third + 1 + index, {
      certificate_id: `${index + 1}e`.repeat(16),
      tbs_sha256: digest(`${index + 1}7b`),
      public_key_spki: Buffer.from(`key ${index}`).toString('base64'),
    }),
  );
  /** As many renewals as were asked for, each recorded when it was made. */
  const after = (count: number) =>
    wishes
      .slice(0, count)
      .reduce((history, wish) => history.at(wish.not_before).and(authorizedBy(wish)), given(...enrolled));
  const last = third + FREE_RENEWALS;
  const tooOften = refusal('renewal_too_often', { renewals: FREE_RENEWALS });

  test('a fourth time at once: certificate_authorized', async () =>
    expect(await after(FREE_RENEWALS - 1).when(authorizeRenewalCommand, renewalAt(last))).toEqual([
      authorizedBy(renewalAt(last)),
    ]));

  test('a fifth time less than a minute after the fourth: refused', async () => {
    const now = last + RENEWAL_INTERVAL_MS - 1;
    expect(await after(FREE_RENEWALS).at(now).when(authorizeRenewalCommand, renewalAt(now))).toEqual(tooOften);
  });

  test('a minute after the fourth: certificate_authorized, and then refused for another minute', async () => {
    const now = last + RENEWAL_INTERVAL_MS;
    const history = after(FREE_RENEWALS).at(now);
    expect(await history.when(authorizeRenewalCommand, renewalAt(now))).toEqual([authorizedBy(renewalAt(now))]);
    const more = renewalAt(now, {
      certificate_id: '0d'.repeat(16),
      public_key_spki: sample.certificate_authorized.data.public_key_spki,
    });
    expect(await history.after(RENEWAL_INTERVAL_MS - 1).when(authorizeRenewalCommand, more)).toEqual(
      refusal('renewal_too_often', { renewals: FREE_RENEWALS + 1 }),
    );
  });

  test('again and again, an hour apart, and never used: the oldest renewal of so many is revoked with each further one', async () => {
    const unusedEnrollment = make('certificate_authorized', { certificate_id: '0c'.repeat(16), cause: 'reenrollment' });
    let history = given(...enrolled, sample.certificate_first_used, unusedEnrollment);
    let now = third;
    const wishOf = (index: number) =>
      renewalAt(now, {
        certificate_id: (0x1000 + index).toString(16).padStart(32, '0'),
        tbs_sha256: digest((0x1000 + index).toString(16)),
        public_key_spki: Buffer.from(`key ${index} of many`).toString('base64'),
      });
    for (let index = 0; index < MOST_UNUSED; index += 1) {
      now += RENEWAL_INTERVAL_MS;
      history = history.at(now).and(authorizedBy(wishOf(index)));
    }
    now += RENEWAL_INTERVAL_MS;
    const one = wishOf(MOST_UNUSED);
    expect(await history.at(now).when(authorizeRenewalCommand, one)).toEqual([
      authorizedBy(one),
      make('certificates_revoked', {
        node_id: NODE,
        certificate_ids: [(0x1000).toString(16).padStart(32, '0')],
        reason: 'superseded',
      }),
    ]);
  });

  test('with one of the keys: told the certificate of that key', async () => {
    const [first] = wishes;
    expect(first && (await after(FREE_RENEWALS).when(authorizeRenewalCommand, first))).toEqual([]);
  });

  test('an operator revoked one of them: certificate_authorized', async () => {
    const revoked = make('certificates_revoked', { node_id: NODE, certificate_ids: ['1e'.repeat(16)] });
    expect(await after(FREE_RENEWALS).and(revoked).when(authorizeRenewalCommand, renewalAt(last))).toEqual([
      authorizedBy(renewalAt(last)),
    ]);
  });
});
