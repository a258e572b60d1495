import { expect, test } from 'vitest';
import { complete } from '../../src/rotation/phases.ts';
import type { RotationPorts } from '../../src/rotation/ports.ts';
import { begun, portsOf, saying, stateOf } from './support/world.ts';

const APART = 'gateway@other-host:1';

test('complete, and a gateway with files of its own serves the old CA: named, although the rotation is completed', async () => {
  const world = await begun();
  const ca = await world.log.rows.get('fleet_ca', 'fleet');
  const trusted = (ca?.trusted ?? []).map(({ sha256 }) => sha256);
  const apart = { program: APART, pki: saying(trusted, ca?.current_ca_sha256 ?? '') };
  const behind: RotationPorts = { ...portsOf(world), liveGateways: () => Promise.resolve([apart]) };
  const refused = { kind: 'refused', refusal: { code: 'ca_not_served_everywhere', details: { gateways: [APART] } } };

  expect(await complete(behind, 500)).toEqual(refused);
  expect(await stateOf(world)).toMatchObject({ rotating: false, files: { issuer: 'second', serving: 'second' } });

  const events = world.log.events.length;
  expect(await complete(behind, 0)).toEqual(refused);
  expect(await complete(portsOf(world), 0)).toEqual({ kind: 'done', changed: false });
  expect(world.log.events).toHaveLength(events);
});
