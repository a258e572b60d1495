import { describe, expect, test } from 'vitest';
import {
  type Catalogue,
  checkPlacement,
  type PlacementRequest,
  validatePlacement,
} from '../../src/hetzner/validate.ts';
import { stubWorld } from './stub-world.ts';

const NOW = Date.parse('2026-08-01T00:00:00Z');
const ending = (at: string) => ({ announced: '2026-01-01T00:00:00Z', unavailable_after: at });
const offer = (name: string, more: { available?: boolean; deprecation?: ReturnType<typeof ending> } = {}) => ({
  name,
  available: true,
  deprecation: null,
  ...more,
});
const type = (
  id: number,
  name: string,
  locations: ReturnType<typeof offer>[],
  more: { architecture?: 'arm'; memory?: number } = {},
) => ({
  id,
  name,
  cores: 4,
  memory: 8,
  disk: 80,
  architecture: 'x86' as const,
  deprecation: null,
  locations,
  ...more,
});
const image = (id: number, name: string, architecture: 'x86' | 'arm', deprecated: string | null = null) => ({
  id,
  name,
  architecture,
  status: 'available',
  deprecated,
});

const catalogue: Catalogue = {
  serverTypes: [
    type(1, 'cx33', [offer('fsn1'), offer('hel1', { available: false })]),
    type(2, 'cpx31', [
      offer('fsn1', { deprecation: ending('2026-12-31T00:00:00Z') }),
      offer('hel1', { deprecation: ending('2026-07-01T00:00:00Z') }),
    ]),
    type(3, 'cpx32', [offer('fsn1'), offer('hel1')]),
    type(4, 'cax21', [offer('fsn1')], { architecture: 'arm' }),
    type(5, 'cx13', [offer('fsn1')], { memory: 1 }),
  ],
  locations: [
    { id: 1, name: 'fsn1' },
    { id: 2, name: 'hel1' },
  ],
  images: [
    image(10, 'ubuntu-24.04', 'x86'),
    image(11, 'ubuntu-24.04', 'arm'),
    image(12, 'arm-only', 'arm'),
    image(13, 'ubuntu-20.04', 'x86', '2025-05-31'),
  ],
  sshKeys: [
    { id: 20, name: 'anna' },
    { id: 21, name: 'bert' },
  ],
  placementGroups: [
    { id: 30, name: 'spread', servers: [] },
    { id: 31, name: 'full', servers: Array.from({ length: 10 }, (_, index) => index) },
  ],
};
const request: PlacementRequest = {
  serverType: 'cx33',
  location: 'fsn1',
  image: 'ubuntu-24.04',
  sshKeys: ['anna', '21'],
  placementGroup: 'spread',
};
const check = (change: Partial<PlacementRequest>) => checkPlacement({ ...request, ...change }, catalogue, NOW);
const told = (change: Partial<PlacementRequest>) => {
  const checked = check(change);
  return checked.ok ? [] : checked.refusals.map(({ code, message }) => [code, message]);
};

describe('a placement that is to be had', () => {
  test('x86: resolved to ids, with the image of its architecture', () =>
    expect(check({})).toEqual({
      ok: true,
      value: {
        serverType: 'cx33',
        architecture: 'x86',
        location: 'fsn1',
        imageId: 10,
        sshKeyIds: [20, 21],
        placementGroupId: 30,
        capacity: { cpuMillis: 3_500, memoryMb: 7_168, diskGb: 60 },
      },
    }));
  test('arm: the other image of the same name', () =>
    expect(check({ serverType: 'cax21' })).toMatchObject({ ok: true, value: { imageId: 11 } }));
  test('no placement group: null', () =>
    expect(check({ placementGroup: null })).toMatchObject({ value: { placementGroupId: null } }));
});

describe('server types', () => {
  test('gone: names the successor', () =>
    expect(told({ serverType: 'cx32' })).toEqual([
      ['server_type_gone', 'server type cx32 does not exist (any more); use cx33'],
    ]));
  test('gone without a successor there: says so much', () =>
    expect(told({ serverType: 'cx32', location: 'nowhere' })).toEqual([
      ['location_unknown', 'there is no location nowhere; there are fsn1, hel1'],
      ['server_type_gone', 'server type cx32 does not exist (any more)'],
    ]));
  test('deprecated in the location: names the end and the successor', () =>
    expect(told({ serverType: 'cpx31' })).toEqual([
      ['server_type_deprecated', 'server type cpx31 is deprecated in fsn1 and ends on 2026-12-31T00:00:00Z; use cpx32'],
    ]));
  test('past its end in one location: gone there', () =>
    expect(told({ serverType: 'cpx31', location: 'hel1' })).toEqual([
      ['server_type_gone', 'server type cpx31 was withdrawn from hel1 on 2026-07-01T00:00:00Z; use cpx32'],
    ]));
  test('not offered in the location: names where', () =>
    expect(told({ serverType: 'cax21', location: 'hel1' })).toEqual([
      ['server_type_not_in_location', 'server type cax21 is not offered in hel1, but in fsn1'],
    ]));
  test('sold out', () =>
    expect(told({ location: 'hel1' })).toEqual([
      ['server_type_unavailable', 'server type cx33 is sold out in hel1 at the moment'],
    ]));
  test('too small for the host reserve', () =>
    expect(told({ serverType: 'cx13' }).map(([code]) => code)).toEqual(['server_type_too_small']));
});

describe('the rest', () => {
  test.each([
    ['image_unknown', { image: 'ubuntu-99.04' }],
    ['image_architecture_mismatch', { image: 'arm-only' }],
    ['image_deprecated', { image: 'ubuntu-20.04' }],
    ['ssh_key_unknown', { sshKeys: ['anna', 'carl'] }],
    ['ssh_key_missing', { sshKeys: [] }],
    ['placement_group_unknown', { placementGroup: 'tight' }],
    ['placement_group_full', { placementGroup: 'full' }],
  ])('%s', (code, change) => expect(told(change).map(([told]) => told)).toEqual([code]));

  test('everything wrong: all told at once', () =>
    expect(
      told({ serverType: 'cx32', location: 'x', image: 'y', sshKeys: ['z'], placementGroup: 'w' }).map(
        ([code]) => code,
      ),
    ).toEqual(['location_unknown', 'server_type_gone', 'image_unknown', 'ssh_key_unknown', 'placement_group_unknown']));
});

describe('asked of the provider', () => {
  const wanted = { ...request, sshKeys: ['operator'], placementGroup: null };

  test('cx33 in fsn1: resolved', async () => {
    await using world = await stubWorld();
    const checked = await validatePlacement(world.api, wanted, world.clock.now());
    expect(checked).toMatchObject({ ok: true, value: { serverType: 'cx33', imageId: world.request.imageId } });
  });

  test('sold out, with an unknown key and group: all told', async () => {
    await using world = await stubWorld({ catalogue: { soldOut: [{ serverType: 'cx33', location: 'fsn1' }] } });
    const checked = await validatePlacement(
      world.api,
      { ...wanted, sshKeys: ['x'], placementGroup: 'y' },
      world.clock.now(),
    );
    expect(checked.ok || checked.refusals.map(({ code }) => code)).toEqual([
      'server_type_unavailable',
      'ssh_key_unknown',
      'placement_group_unknown',
    ]);
  });
});
