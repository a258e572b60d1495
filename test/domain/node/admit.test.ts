import { describe, expect, test } from 'vitest';
import { admitNodeCommand } from '../../../src/commands/node.ts';
import { enrolled, NODE, sample } from '../../support/events.ts';
import { given, refusal } from '../../support/given.ts';

const admit = { node_id: NODE };
const withoutCapacity = enrolled.filter(({ type }) => type !== 'node_capacity_recorded');

describe('fleet admit', () => {
  test('active and fresh: node_admitted', async () =>
    expect(await given(...enrolled).when(admitNodeCommand, admit)).toEqual([sample.node_admitted]));

  test('repeated: no new event', async () =>
    expect(await given(...enrolled, sample.node_admitted).when(admitNodeCommand, admit)).toEqual([]));

  test('admitted before and silent since: no new event', async () =>
    expect(
      await given(...enrolled, sample.node_admitted)
        .after(3_600_000)
        .when(admitNodeCommand, admit),
    ).toEqual([]));

  test('unknown: refused', async () =>
    expect(await given().when(admitNodeCommand, admit)).toEqual(refusal('node_unknown', { node: NODE })));

  test('not enrolled: refused, says its status', async () =>
    expect(await given(sample.node_provisioning_requested).when(admitNodeCommand, admit)).toEqual(
      refusal('node_not_active', { node_id: NODE, status: 'provisioning' }),
    ));

  test('heard 60 s ago: node_admitted', async () =>
    expect(
      await given(...enrolled)
        .after(60_000)
        .when(admitNodeCommand, admit),
    ).toEqual([sample.node_admitted]));

  test('silent for 60.001 s: refused, says how long', async () =>
    expect(
      await given(...enrolled)
        .after(60_001)
        .when(admitNodeCommand, admit),
    ).toEqual(refusal('node_silent', { node_id: NODE, silent_ms: 60_001, limit_ms: 60_000 })));

  test('enrolled long ago and heard since: node_admitted', async () =>
    expect(
      await given(...enrolled)
        .after(3_600_000)
        .heard(NODE)
        .after(60_000)
        .when(admitNodeCommand, admit),
    ).toEqual([sample.node_admitted]));

  test('telemetry older than its enrolment: the enrolment counts', async () =>
    expect(
      await given(...enrolled.slice(0, 5))
        .heard(NODE)
        .after(600_000)
        .and(...enrolled.slice(5))
        .after(60_001)
        .when(admitNodeCommand, admit),
    ).toEqual(refusal('node_silent', { node_id: NODE, silent_ms: 60_001, limit_ms: 60_000 })));

  test('capacity unknown: refused', async () =>
    expect(await given(...withoutCapacity).when(admitNodeCommand, admit)).toEqual(
      refusal('capacity_unknown', { node_id: NODE }),
    ));
});
