import { expect, test } from 'vitest';
import { codeOf, namesOf, refusalOf, SERVER, START_MS, startStub } from './support.ts';

const DAY_MS = 86_400_000;
const leaving = (unavailableAfter: string) => ({
  deprecated: [{ serverType: 'cx23', location: 'fsn1', announced: '2026-11-01T00:00:00Z', unavailableAfter }],
});

test('server types: cx23 is listed, cx22 is not', async () => {
  await using api = await startStub();
  const names = namesOf(await api.call('GET', '/server_types'), 'server_types');
  expect(names).toContain('cx23');
  expect(names).not.toContain('cx22');
});

test('type deprecated in one location: said there alone, and still sold', async () => {
  await using api = await startStub({ catalogue: leaving('2027-01-01T00:00:00Z') });
  const { body } = await api.call('GET', '/server_types?name=cx23');
  const deprecation = { announced: '2026-11-01T00:00:00Z', unavailable_after: '2027-01-01T00:00:00Z' };
  expect(body).toMatchObject({
    server_types: [
      {
        deprecated: false,
        locations: [
          { name: 'fsn1', available: true, recommended: false, deprecation },
          { name: 'nbg1', available: true, recommended: true, deprecation: null },
          { name: 'hel1' },
        ],
      },
    ],
  });
  expect((await api.call('POST', '/servers', SERVER)).status).toBe(201);
});

test('past unavailable_after: the location is not listed and does not sell it', async () => {
  await using api = await startStub({ catalogue: leaving(new Date(START_MS + DAY_MS).toISOString()) });
  api.advance(DAY_MS);
  const { body } = await api.call('GET', '/server_types?name=cx23');
  expect(body).toMatchObject({ server_types: [{ locations: [{ name: 'nbg1' }, { name: 'hel1' }] }] });
  expect((await api.call('POST', '/servers', SERVER)).status).toBe(422);
});

test('gone from every location: not listed, unknown to create', async () => {
  const deprecated = ['fsn1', 'nbg1', 'hel1'].map((location) => ({
    serverType: 'cx23',
    location,
    announced: '2026-01-01T00:00:00Z',
    unavailableAfter: '2026-11-01T00:00:00Z',
  }));
  await using api = await startStub({ catalogue: { deprecated } });
  expect(namesOf(await api.call('GET', '/server_types?name=cx23'), 'server_types')).toEqual([]);
  expect((await api.call('POST', '/servers', SERVER)).status).toBe(404);
});

test('images: by architecture; deprecated ones only when asked for', async () => {
  await using api = await startStub();
  const list = async (query: string) => namesOf(await api.call('GET', `/images?${query}`), 'images');
  expect(await list('name=ubuntu-24.04')).toEqual(['ubuntu-24.04', 'ubuntu-24.04']);
  expect(await list('name=ubuntu-24.04&architecture=arm')).toEqual(['ubuntu-24.04']);
  expect(await list('name=ubuntu-20.04')).toEqual([]);
  expect(await list('name=ubuntu-20.04&include_deprecated=true&architecture=x86')).toEqual(['ubuntu-20.04']);
  expect(await list('type=snapshot')).toEqual([]);
  expect((await api.call('GET', '/images?architecture=mips')).status).toBe(422);
});

test('locations: six, each by name and by id', async () => {
  await using api = await startStub();
  const all = namesOf(await api.call('GET', '/locations'), 'locations');
  expect(all).toEqual(['fsn1', 'nbg1', 'hel1', 'ash', 'hil', 'sin']);
  expect(namesOf(await api.call('GET', '/locations?name=hel1'), 'locations')).toEqual(['hel1']);
  expect((await api.call('GET', '/locations/1')).body).toMatchObject({ location: { name: 'fsn1' } });
});

test('SSH keys: operator is there; a second name for the same key is refused; deleted by id', async () => {
  await using api = await startStub();
  const { body } = await api.call('GET', '/ssh_keys?name=operator');
  expect(body).toMatchObject({
    ssh_keys: [{ id: 1, fingerprint: expect.stringMatching(/^([0-9a-f]{2}:){15}[0-9a-f]{2}$/) }],
  });
  const { public_key } = (body as { ssh_keys: [{ public_key: string }] }).ssh_keys[0];
  const again = await api.call('POST', '/ssh_keys', { name: 'second', public_key });
  expect(refusalOf(again)).toEqual({ status: 409, code: 'uniqueness_error', fields: ['public_key'] });
  expect((await api.call('DELETE', '/ssh_keys/1')).status).toBe(204);
  expect((await api.call('POST', '/ssh_keys', { name: 'second', public_key })).status).toBe(201);
  const bad = await api.call('POST', '/ssh_keys', { name: 'third', public_key: 'ssh-ed25519 AAAA' });
  expect(refusalOf(bad)).toEqual({ status: 422, code: 'invalid_input', fields: ['public_key'] });
});

test('placement group with a member: 422 resource_in_use; empty: 204', async () => {
  await using api = await startStub();
  const placement_group = await api.create('placement_groups', { name: 'g', type: 'spread' });
  const server = await api.create('servers', { ...SERVER, placement_group });
  expect((await api.call('GET', `/placement_groups/${placement_group}`)).body).toMatchObject({
    placement_group: { name: 'g', servers: [server] },
  });
  expect(codeOf(await api.call('DELETE', `/placement_groups/${placement_group}`))).toBe('resource_in_use');
  const empty = await api.create('placement_groups', { name: 'empty', type: 'spread' });
  expect((await api.call('DELETE', `/placement_groups/${empty}`)).status).toBe(204);
});
