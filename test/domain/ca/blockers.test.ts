import { describe, expect, test } from 'vitest';
import { loadWitnesses } from '../../../src/commands/ca.ts';
import { type Blocker, rotationBlockers } from '../../../src/domain/ca/blockers.ts';
import type { RotationWitnesses } from '../../../src/domain/ca/witnesses.ts';
import { nothing } from '../../../src/domain/decision.ts';
import type { FleetEvent } from '../../../src/domain/event/catalogue.ts';
import type { CommandDefinition } from '../../../src/transactor/command.ts';
import {
  CA,
  CERTIFICATE_LIFETIME_MS,
  enrolled,
  issuing,
  MINUTE,
  make,
  moved,
  NEW_CA,
  NODE,
  provisioned,
  renewed,
  SECOND_SECRET,
  SECOND_SERIAL,
  START,
  sample,
} from '../../support/events.ts';
import { given } from '../../support/given.ts';

const NAME = sample.node_provisioning_requested.data.name;
const secretEnds = START + 15 * MINUTE;
const ends = START + CERTIFICATE_LIFETIME_MS;

/** Who blocks, `after` ms later. Secrets of the sample have ended by default. */
async function blockers(
  events: readonly FleetEvent[],
  after = 20 * MINUTE,
): Promise<Omit<Blocker, 'node_id' | 'name'>[]> {
  const found: Blocker[] = [];
  const look: CommandDefinition<object, RotationWitnesses> = {
    name: 'look',
    load: loadWitnesses,
    decide(_, witnesses, { now }) {
      found.push(...rotationBlockers(NEW_CA, witnesses, now));
      return nothing();
    },
  };
  await given(...events)
    .after(after)
    .when(look, {});
  return found.map(({ node_id, name, ...blocker }) => {
    expect([node_id, name]).toEqual([NODE, NAME]);
    return blocker;
  });
}

const neverRenewed = { reason: 'never_renewed', until: ends };
const unhealthy = sample.node_became_unhealthy;
const mustMove: readonly [string, readonly FleetEvent[]][] = [
  ['active', []],
  ['unhealthy', [unhealthy]],
  ['recovered', [unhealthy, sample.node_recovered]],
  ['draining', [sample.node_drain_started]],
];
const free: readonly [string, readonly FleetEvent[]][] = [
  ['lost', [sample.node_lost]],
  ['retired', [sample.node_retired]],
];

describe.each(mustMove)('a node that is %s', (_, status) => {
  const node = [...enrolled, ...status, ...issuing];

  test('has only a certificate of the old CA: never_renewed, until that ends', async () =>
    expect(await blockers(node)).toEqual([neverRenewed]));

  test('was renewed and never used it: renewed_never_used, until the new one ends', async () =>
    expect(await blockers([...node, ...renewed.map((event) => longer(event))])).toEqual([
      { reason: 'renewed_never_used', until: ends + MINUTE },
    ]));

  test('has used one of the new CA: does not block', async () =>
    expect(await blockers([...node, ...moved])).toEqual([]));

  test('has one of the new CA that is not signed yet: never_renewed', async () =>
    expect(await blockers([...node, ...renewed.slice(0, 1)])).toEqual([neverRenewed]));

  test('has none that has not ended: no_certificate', async () =>
    expect(await blockers(node, CERTIFICATE_LIFETIME_MS)).toEqual([{ reason: 'no_certificate', until: null }]));

  test('1 ms before its certificate ends: never_renewed', async () =>
    expect(await blockers(node, CERTIFICATE_LIFETIME_MS - 1)).toEqual([neverRenewed]));

  test('used one of the new CA, which has ended: no_certificate', async () =>
    expect(await blockers([...node, ...moved], CERTIFICATE_LIFETIME_MS)).toEqual([
      { reason: 'no_certificate', until: null },
    ]));

  test('used one of the new CA, which was revoked: no_certificate', async () =>
    expect(
      await blockers([...node, ...moved, make('certificates_revoked', { certificate_ids: [SECOND_SERIAL] })]),
    ).toEqual([{ reason: 'no_certificate', until: null }]));
});

describe.each(free)('a node that is %s', (_, status) => {
  test('has only a certificate of the old CA: does not block', async () =>
    expect(await blockers([...enrolled, ...status, ...issuing])).toEqual([]));
});

/** The renewed certificate lasts a minute longer than the first. */
function longer(event: FleetEvent): FleetEvent {
  return event.type === 'certificate_authorized'
    ? { ...event, data: { ...event.data, not_after: ends + MINUTE } }
    : event;
}

describe('a secret is armed', () => {
  const armed = (...ca_sha256s: string[]) =>
    make('node_enrollment_secret_armed', { secret_sha256: SECOND_SECRET, ca_sha256s, expires_at: secretEnds + 5 });
  const blind = { reason: 'secret_without_new_ca', until: secretEnds + 5 };
  const requested = [sample.node_provisioning_requested, ...issuing];

  test.each<[string, readonly FleetEvent[]]>([
    ['being provisioned', requested],
    ['that moved', [...enrolled, ...issuing, ...moved]],
    ['that moved and drains', [...enrolled, sample.node_drain_started, ...issuing, ...moved]],
    ['that is lost', [...enrolled, sample.node_lost, ...issuing]],
  ])('without the new CA for a node %s: secret_without_new_ca, until it ends', async (_, events) =>
    expect(await blockers([...events, armed(CA)], secretEnds - START + 4)).toEqual([blind]),
  );

  test('for a node that has not moved: both reasons', async () =>
    expect(await blockers([...enrolled, ...issuing, armed(CA)], secretEnds - START)).toEqual([neverRenewed, blind]));

  test('from before CAs were recorded: secret_without_new_ca', async () =>
    expect(await blockers([...requested, armed()], 0)).toEqual([blind]));

  test('two: until the later one ends', async () =>
    expect(await blockers([...provisioned, ...issuing, armed(CA)], 0)).toEqual([blind]));

  test('two, one with the new CA: until the other one ends', async () =>
    expect(await blockers([...provisioned, ...issuing, armed(NEW_CA, CA)], 0)).toEqual([
      { reason: 'secret_without_new_ca', until: secretEnds },
    ]));

  test('with the new CA: does not block', async () =>
    expect(await blockers([...requested, armed(NEW_CA, CA)], 0)).toEqual([]));

  test('when it has ended: does not block', async () =>
    expect(await blockers([...requested, armed(CA)], secretEnds - START + 5)).toEqual([]));

  test('after its node was given up: good once that is retried, so it blocks', async () =>
    expect(await blockers([...requested, sample.node_provisioning_failed, armed(CA)], 0)).toEqual([blind]));

  test.each([
    ['given up', [...requested, armed(CA), sample.node_provisioning_failed]],
    ['retired', [...enrolled, ...issuing, armed(CA), sample.node_retired]],
  ])('its node was %s: does not block', async (_, events) => expect(await blockers(events, 0)).toEqual([]));
});

describe('a secret was redeemed and the answer may be lost', () => {
  const authorized = [...provisioned, sample.certificate_authorized, ...issuing];
  const enrolling = { reason: 'enrolling', until: secretEnds };

  test('not signed yet: enrolling, until the secret ends', async () =>
    expect(await blockers(authorized, 0)).toEqual([enrolling]));

  test('issued and not used: never_renewed and enrolling', async () =>
    expect(await blockers([...enrolled, ...issuing], secretEnds - START - 1)).toEqual([neverRenewed, enrolling]));

  test('a lost node enrolled anew: enrolling', async () =>
    expect(await blockers([...enrolled, sample.node_lost, ...issuing], 0)).toEqual([enrolling]));

  test('when the secret has ended, not signed yet: does not block', async () =>
    expect(await blockers(authorized, secretEnds - START)).toEqual([]));

  test('by the new CA: enrolling all the same, the host may trust only the old one until it has its answer', async () =>
    expect(
      await blockers([...provisioned, ...issuing, make('certificate_authorized', { issuer_ca_sha256: NEW_CA })], 0),
    ).toEqual([enrolling]));

  test('used: only never_renewed', async () =>
    expect(await blockers([...enrolled, sample.certificate_first_used, ...issuing], 0)).toEqual([neverRenewed]));
});
