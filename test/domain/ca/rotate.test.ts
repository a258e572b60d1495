import { describe, expect, test } from 'vitest';
import {
  abortRotationCommand,
  beginRotationCommand,
  completeRotationCommand,
  initializeCaCommand,
  recordGatewayCertificateCommand,
  refuseStepOfHostCommand,
  switchIssuerCommand,
} from '../../../src/commands/ca.ts';
import { GATEWAY_LIVE_MS } from '../../../src/domain/ca/state.ts';
import type { EventData, FleetEvent } from '../../../src/domain/event/catalogue.ts';
import {
  begun,
  CA,
  digest,
  enrolled,
  issuing,
  MINUTE,
  make,
  moved,
  NEW_CA,
  ROTATION,
  renewed,
  SECOND_SERIAL,
  SERIAL,
  sample,
} from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const GATEWAY = 'gateway@fsn1:4711';
const SECOND_ROTATION = '70000000-0000-4000-8000-000000000002';
const OTHER_GATEWAY = 'gateway@nbg1:4711';
const initialized = sample.ca_initialized;
const completed = make('ca_rotation_completed', { revoked_certificate_ids: [] });

/** The event of a refused step in the rotation of most tests. */
function onRecord(
  action: EventData<'ca_rotation_refused'>['action'],
  reason: EventData<'ca_rotation_refused'>['reason'],
  changes: Partial<EventData<'ca_rotation_refused'>> = {},
): FleetEvent {
  return make('ca_rotation_refused', {
    action,
    reason,
    blocking_node_ids: [],
    blocking_reasons: [],
    blocking_gateways: [],
    ...changes,
  });
}

/** What a refusal tells beside its own details when no node and no gateway is in the way. */
const nobody = { nodes: [], node_count: 0, gateways: [] };

describe("the fleet's CA becomes known", () => {
  test('none known: ca_initialized', async () =>
    expect(await given().when(initializeCaCommand, initialized.data)).toEqual([initialized]));

  test('repeated: no new event', async () =>
    expect(await given(initialized).when(initializeCaCommand, initialized.data)).toEqual([]));

  test('another one known: refused on record, says which', async () => {
    const other = { ...initialized.data, ca_sha256: NEW_CA };
    expect(await given(initialized).when(initializeCaCommand, other)).toEqual(
      refusal('ca_already_initialized', { ...nobody, ca_sha256: CA }),
    );
    expect(await given(initialized).recorded(initializeCaCommand, other)).toEqual([
      onRecord('init', 'ca_already_initialized', { rotation_id: null }),
    ]);
  });

  test.each([
    ['begun', begun],
    ['issuing', issuing],
  ])('a rotation is %s: refused on record, also for the CA that is known', async (_, events) => {
    expect(await given(...events).when(initializeCaCommand, initialized.data)).toEqual(
      refusal('ca_rotation_running', { ...nobody, rotation_id: ROTATION }),
    );
    expect(await given(...events).recorded(initializeCaCommand, initialized.data)).toEqual([
      onRecord('init', 'ca_rotation_running'),
    ]);
  });
});

describe('a rotation is begun', () => {
  const { data } = sample.ca_rotation_begun;
  const begin = (events: readonly FleetEvent[], changes: Partial<typeof data> = {}) => {
    const history = given(...events);
    return {
      events: () => history.when(beginRotationCommand, { ...data, ...changes }),
      reply: () => history.reply(beginRotationCommand, { ...data, ...changes }),
      record: () => history.recorded(beginRotationCommand, { ...data, ...changes }),
    };
  };
  const another = { rotation_id: SECOND_ROTATION, ca_sha256: digest('cc') };

  test('none under way: ca_rotation_begun, tells its id', async () => {
    expect(await begin([initialized]).events()).toEqual([sample.ca_rotation_begun]);
    expect(await begin([initialized]).reply()).toEqual({ rotation_id: ROTATION });
  });

  test.each([
    ['begun', begun],
    ['issuing', issuing],
  ])('to the same CA again while it is %s: no new event, tells the id of the rotation under way', async (_, events) => {
    expect(await begin(events, { rotation_id: another.rotation_id }).events()).toEqual([]);
    expect(await begin(events, { rotation_id: another.rotation_id }).reply()).toEqual({ rotation_id: ROTATION });
  });

  test('to another CA while one is under way: refused on record', async () => {
    expect(await begin(begun, another).events()).toEqual(
      refusal('ca_rotation_running', { ...nobody, rotation_id: ROTATION }),
    );
    expect(await begin(begun, another).record()).toEqual([onRecord('begin', 'ca_rotation_running')]);
  });

  test('from another CA than the fleet has: refused on record, says both', async () => {
    const wrong = { previous_ca_sha256: digest('cc') };
    expect(await begin([initialized], wrong).events()).toEqual(
      refusal('ca_files_differ', { ...nobody, ca_sha256: CA, file_ca_sha256: digest('cc') }),
    );
    expect(await begin([initialized], wrong).record()).toEqual([
      onRecord('begin', 'ca_files_differ', { rotation_id: null }),
    ]);
  });

  const rotated = [...issuing, completed];
  test.each<[string, readonly FleetEvent[], Partial<typeof data>]>([
    ['the CA in use', [initialized], { ca_sha256: CA }],
    ['a CA of an aborted rotation', [...begun, sample.ca_rotation_aborted], {}],
    ['the CA of a completed rotation', rotated, { previous_ca_sha256: NEW_CA }],
    ["the fleet's first CA", rotated, { previous_ca_sha256: NEW_CA, ca_sha256: CA }],
  ])('to %s: refused on record', async (_, events, changes) => {
    const { ca_sha256 } = { ...data, ...changes };
    const again = { ...changes, rotation_id: another.rotation_id };
    expect(await begin(events, again).events()).toEqual(refusal('ca_used_before', { ...nobody, ca_sha256 }));
    expect(await begin(events, again).record()).toEqual([onRecord('begin', 'ca_used_before', { rotation_id: null })]);
  });

  test('after one was completed, to a third CA: ca_rotation_begun', async () => {
    const next = { ...another, previous_ca_sha256: NEW_CA };
    expect(await begin(rotated, next).events()).toEqual([make('ca_rotation_begun', next)]);
  });

  test('no CA known: refused', async () => expect(await begin([]).events()).toEqual(refusal('ca_not_initialized')));
});

describe('the new CA is to issue', () => {
  const step = { rotation_id: ROTATION };

  test('every live gateway trusts it: ca_issuer_switched names them', async () =>
    expect(
      await given(...begun)
        .beacon(GATEWAY, NEW_CA, CA)
        .beacon(OTHER_GATEWAY, NEW_CA, CA)
        .when(switchIssuerCommand, step),
    ).toEqual([make('ca_issuer_switched', { gateways: [GATEWAY, OTHER_GATEWAY] })]));

  test('no gateway is alive: ca_issuer_switched names none', async () =>
    expect(await given(...begun).when(switchIssuerCommand, step)).toEqual([
      make('ca_issuer_switched', { gateways: [] }),
    ]));

  test('a live gateway does not trust it: refused on record, names it alone', async () => {
    const history = () =>
      given(...begun)
        .beacon(GATEWAY, NEW_CA, CA)
        .beacon(OTHER_GATEWAY, CA);
    expect(await history().when(switchIssuerCommand, step)).toEqual(
      refusal('ca_not_trusted_everywhere', { ...nobody, gateways: [OTHER_GATEWAY] }),
    );
    expect(await history().recorded(switchIssuerCommand, step)).toEqual([
      onRecord('issue', 'ca_not_trusted_everywhere', { blocking_gateways: [OTHER_GATEWAY] }),
    ]);
  });

  test('a gateway that does not trust it was last heard just in time: refused', async () =>
    expect(
      await given(...begun)
        .beacon(GATEWAY, CA)
        .after(GATEWAY_LIVE_MS)
        .when(switchIssuerCommand, step),
    ).toEqual(refusal('ca_not_trusted_everywhere', { ...nobody, gateways: [GATEWAY] })));

  test('it is dead: ca_issuer_switched without it', async () =>
    expect(
      await given(...begun)
        .beacon(GATEWAY, CA)
        .after(GATEWAY_LIVE_MS + 1)
        .when(switchIssuerCommand, step),
    ).toEqual([make('ca_issuer_switched', { gateways: [] })]));

  test('repeated: no new event, whatever gateways say', async () =>
    expect(
      await given(...issuing)
        .beacon(GATEWAY, CA)
        .when(switchIssuerCommand, step),
    ).toEqual([]));

  test.each<[string, readonly FleetEvent[], string | null]>([
    ['none under way', [initialized], null],
    ['aborted', [...begun, sample.ca_rotation_aborted], null],
    ['completed', [...issuing, completed], null],
    [
      'another one under way',
      [initialized, make('ca_rotation_begun', { rotation_id: SECOND_ROTATION })],
      SECOND_ROTATION,
    ],
  ])('%s: refused on record', async (_, events, rotation_id) => {
    expect(await given(...events).when(switchIssuerCommand, step)).toEqual(
      refusal('ca_rotation_unknown', { ...nobody, rotation_id: ROTATION }),
    );
    expect(await given(...events).recorded(switchIssuerCommand, step)).toEqual([
      onRecord('issue', 'ca_rotation_unknown', { rotation_id }),
    ]);
  });

  test('no CA known: refused', async () =>
    expect(await given().when(switchIssuerCommand, step)).toEqual(refusal('ca_not_initialized')));
});

describe('a rotation is completed', () => {
  test('everybody moved: ca_rotation_completed, and the old certificates are revoked', async () => {
    const superseded = moved.slice(0, -1);
    const history = () => given(...enrolled, ...issuing, ...superseded).after(20 * MINUTE);
    expect(await history().when(completeRotationCommand, {})).toEqual([
      make('ca_rotation_completed', { revoked_certificate_ids: [SERIAL] }),
    ]);
    expect(await history().reply(completeRotationCommand, {})).toEqual({ rotation_id: ROTATION, revoked: 1 });
  });

  test('nothing is left of the old CA: ca_rotation_completed revokes nothing', async () =>
    expect(await given(...enrolled, ...issuing, ...moved).when(completeRotationCommand, {})).toEqual([completed]));

  test("a lost node's certificate: revoked, the node does not block", async () =>
    expect(
      await given(...enrolled, sample.node_lost, ...issuing)
        .after(20 * MINUTE)
        .when(completeRotationCommand, {}),
    ).toEqual([make('ca_rotation_completed', { revoked_certificate_ids: [SERIAL] })]));

  test('a node has not moved: refused on record, names it and why', async () => {
    const history = () => given(...enrolled, ...issuing);
    const ends = new Date(sample.certificate_authorized.data.not_after).toISOString();
    const secretEnds = new Date(sample.node_enrollment_secret_armed.data.expires_at).toISOString();
    expect(await history().when(completeRotationCommand, {})).toEqual(
      refusal('ca_rotation_blocked', {
        nodes: [
          `app-fsn1-7k2m: never_renewed, expires at ${ends}`,
          `app-fsn1-7k2m: enrolling, expires at ${secretEnds}`,
        ],
        node_count: 1,
        gateways: [],
      }),
    );
    const { node_id } = sample.node_enrolled.data;
    expect(await history().recorded(completeRotationCommand, {})).toEqual([
      onRecord('complete', 'ca_rotation_blocked', {
        blocking_node_ids: [node_id, node_id],
        blocking_reasons: ['never_renewed', 'enrolling'],
      }),
    ]);
  });

  test('a live gateway does not trust the new CA: refused on record, names it', async () => {
    const history = () => given(...issuing).beacon(GATEWAY, CA);
    expect(await history().when(completeRotationCommand, {})).toEqual(
      refusal('ca_rotation_blocked', { ...nobody, gateways: [GATEWAY] }),
    );
    expect(await history().recorded(completeRotationCommand, {})).toEqual([
      onRecord('complete', 'ca_rotation_blocked', { blocking_gateways: [GATEWAY] }),
    ]);
  });

  test('a dead one does not: ca_rotation_completed', async () =>
    expect(
      await given(...issuing)
        .beacon(GATEWAY, CA)
        .after(GATEWAY_LIVE_MS + 1)
        .when(completeRotationCommand, {}),
    ).toEqual([completed]));

  test('the new CA does not issue yet: refused on record', async () => {
    expect(await given(...begun).when(completeRotationCommand, {})).toEqual(refusal('ca_rotation_not_issuing', nobody));
    expect(await given(...begun).recorded(completeRotationCommand, {})).toEqual([
      onRecord('complete', 'ca_rotation_not_issuing'),
    ]);
  });

  test.each<[string, readonly FleetEvent[]]>([
    ['none under way', [initialized]],
    ['aborted', [...begun, sample.ca_rotation_aborted]],
    ['repeated', [...issuing, completed]],
  ])('%s: refused on record', async (_, events) => {
    expect(await given(...events).when(completeRotationCommand, {})).toEqual(refusal('ca_no_rotation', nobody));
    expect(await given(...events).recorded(completeRotationCommand, {})).toEqual([
      onRecord('complete', 'ca_no_rotation', { rotation_id: null }),
    ]);
  });

  test('no CA known: refused', async () =>
    expect(await given().when(completeRotationCommand, {})).toEqual(refusal('ca_not_initialized')));
});

describe('a rotation is aborted', () => {
  test.each([
    ['begun', begun],
    ['issuing, and nothing was issued', issuing],
  ])('%s: ca_rotation_aborted', async (_, events) => {
    expect(await given(...enrolled, ...events).when(abortRotationCommand, {})).toEqual([sample.ca_rotation_aborted]);
    expect(await given(...enrolled, ...events).reply(abortRotationCommand, {})).toEqual({ rotation_id: ROTATION });
  });

  const [authorizedOnly] = renewed;
  test.each<[string, readonly (FleetEvent | undefined)[]]>([
    ['authorised and not signed', [authorizedOnly]],
    ['issued', renewed],
    ['revoked since', [...renewed, make('certificates_revoked', { certificate_ids: [SECOND_SERIAL] })]],
  ])('a certificate of the new CA was %s: refused on record', async (_, events) => {
    const history = () => given(...enrolled, ...issuing, ...events.filter((event) => event !== undefined));
    expect(await history().when(abortRotationCommand, {})).toEqual(
      refusal('ca_has_issued', { ...nobody, certificate_id: SECOND_SERIAL }),
    );
    expect(await history().recorded(abortRotationCommand, {})).toEqual([onRecord('abort', 'ca_has_issued')]);
  });

  test.each<[string, readonly FleetEvent[]]>([
    ['none under way', [initialized]],
    ['repeated', [...begun, sample.ca_rotation_aborted]],
    ['completed', [...issuing, completed]],
  ])('%s: refused on record', async (_, events) => {
    expect(await given(...events).when(abortRotationCommand, {})).toEqual(refusal('ca_no_rotation', nobody));
    expect(await given(...events).recorded(abortRotationCommand, {})).toEqual([
      onRecord('abort', 'ca_no_rotation', { rotation_id: null }),
    ]);
  });

  test('no CA known: refused', async () =>
    expect(await given().when(abortRotationCommand, {})).toEqual(refusal('ca_not_initialized')));
});

describe('a gateway is to get a certificate', () => {
  const { data } = sample.gateway_certificate_issued;
  const record = (issuer_ca_sha256: string, events: readonly FleetEvent[]) =>
    given(...events).when(recordGatewayCertificateCommand, { ...data, issuer_ca_sha256 });

  test.each<[string, string, readonly FleetEvent[]]>([
    ['of the only CA', CA, [initialized]],
    ['of the old CA, begun', CA, begun],
    ['of the old CA, issuing: agents that have not renewed trust no other', CA, issuing],
    ['of the new CA, completed', NEW_CA, [...issuing, completed]],
  ])('%s: gateway_certificate_issued', async (_, issuer, events) =>
    expect(await record(issuer, events)).toEqual([make('gateway_certificate_issued', { issuer_ca_sha256: issuer })]),
  );

  test.each<[string, string, readonly FleetEvent[], string]>([
    ['of an unknown CA', digest('cc'), [initialized], CA],
    ['of the new CA, begun', NEW_CA, begun, CA],
    ['of the new CA, issuing', NEW_CA, issuing, CA],
    ['of the old CA, completed', CA, [...issuing, completed], NEW_CA],
    ['of an aborted CA', NEW_CA, [...begun, sample.ca_rotation_aborted], CA],
  ])('%s: refused on record, says which may', async (_, issuer, events, current) => {
    expect(await record(issuer, events)).toEqual(
      refusal('issuer_not_current', { ...nobody, issuer_ca_sha256: current }),
    );
    const command = { ...data, issuer_ca_sha256: issuer };
    expect(await given(...events).recorded(recordGatewayCertificateCommand, command)).toEqual([
      expect.objectContaining({ data: expect.objectContaining({ action: 'reissue', reason: 'issuer_not_current' }) }),
    ]);
  });

  test('its first one by another CA: refused on record as a part of init', async () => {
    const command = { ...data, issuer_ca_sha256: NEW_CA, cause: 'init' } as const;
    expect(await given(initialized).recorded(recordGatewayCertificateCommand, command)).toEqual([
      onRecord('init', 'issuer_not_current', { rotation_id: null }),
    ]);
  });

  test('no CA known: refused', async () => expect(await record(CA, [])).toEqual(refusal('ca_not_initialized')));
});

describe('a host cannot take a step because of its files', () => {
  const step = { action: 'complete', reason: 'ca_key_missing', details: { ca_sha256: NEW_CA } } as const;

  test('a CA is known: refused on record', async () => {
    expect(await given(...issuing).when(refuseStepOfHostCommand, step)).toEqual(
      refusal('ca_key_missing', { ...nobody, ca_sha256: NEW_CA }),
    );
    expect(await given(...issuing).recorded(refuseStepOfHostCommand, step)).toEqual([
      onRecord('complete', 'ca_key_missing'),
    ]);
  });

  test('no CA known: refused, there is nothing to attempt it with', async () => {
    expect(await given().when(refuseStepOfHostCommand, step)).toEqual(refusal('ca_not_initialized'));
    expect(await given().recorded(refuseStepOfHostCommand, step)).toEqual([]);
  });
});
