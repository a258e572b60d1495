import { describe, expect, test } from 'vitest';
import { ACTION_MS, codeOf, namesOf, refusalOf, SERVER, startStub, type TestStub } from './support.ts';

async function statusOf(api: TestStub, id: number): Promise<unknown> {
  const { body } = await api.call('GET', `/servers/${id}`);
  return (body as { server: { status: unknown } }).server.status;
}

describe('create', () => {
  test('201: initializing and locked, create_server running, start_server next', async () => {
    await using api = await startStub();
    const answer = await api.call('POST', '/servers', { ...SERVER, ssh_keys: ['operator'], labels: { a: 'b' } });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({
      server: {
        id: 2,
        name: 'app-1',
        status: 'initializing',
        locked: true,
        created: '2026-11-30T00:00:00+00:00',
        labels: { a: 'b' },
        server_type: { name: 'cx23', cores: 2, memory: 4, disk: 40, architecture: 'x86' },
        location: { name: 'fsn1' },
        image: { name: 'ubuntu-24.04', architecture: 'x86' },
        public_net: { ipv4: { ip: '192.0.2.1' }, ipv6: { ip: '2001:db8:0:1::/64' }, firewalls: [] },
      },
      action: { id: 3, command: 'create_server', status: 'running', progress: 0, finished: null, error: null },
      next_actions: [{ id: 4, command: 'start_server', status: 'running', resources: [{ id: 2, type: 'server' }] }],
      root_password: null,
    });
  });

  test('as time goes by: initializing, starting, running and unlocked', async () => {
    await using api = await startStub();
    const id = await api.create('servers', SERVER);
    expect(await statusOf(api, id)).toBe('initializing');
    api.advance(ACTION_MS);
    expect(await statusOf(api, id)).toBe('starting');
    expect((await api.call('GET', '/actions/3')).body).toMatchObject({
      action: { status: 'success', progress: 100, finished: '2026-11-30T00:00:01+00:00' },
    });
    api.advance(ACTION_MS / 2);
    expect((await api.call('GET', '/actions/4')).body).toMatchObject({ action: { status: 'running', progress: 75 } });
    api.advance(ACTION_MS / 2);
    expect((await api.call('GET', `/servers/${id}`)).body).toMatchObject({
      server: { status: 'running', locked: false },
    });
  });

  test('without SSH key: a root password', async () => {
    await using api = await startStub();
    expect((await api.call('POST', '/servers', SERVER)).body).toMatchObject({ root_password: expect.any(String) });
  });

  test('start_after_create false: no next action, ends off', async () => {
    await using api = await startStub();
    const { body } = await api.call('POST', '/servers', { ...SERVER, start_after_create: false });
    expect(body).toMatchObject({ next_actions: [] });
    api.advance(ACTION_MS);
    expect(await statusOf(api, 2)).toBe('off');
  });

  test('type, image, location and key by number: the same server', async () => {
    await using api = await startStub();
    const numbers = { name: 'n', server_type: 114, image: 161547269, location: 1, ssh_keys: [1] };
    const { body } = await api.call('POST', '/servers', numbers);
    expect(body).toMatchObject({ server: { server_type: { name: 'cx23' }, location: { name: 'fsn1' } } });
  });

  test('arm type with an image name: the arm image', async () => {
    await using api = await startStub();
    const { body } = await api.call('POST', '/servers', { ...SERVER, server_type: 'cax11' });
    expect(body).toMatchObject({ server: { image: { id: 161547270, architecture: 'arm' } } });
  });

  test('no public addresses asked for: both are null', async () => {
    await using api = await startStub();
    const public_net = { enable_ipv4: false, enable_ipv6: false };
    const { body } = await api.call('POST', '/servers', { ...SERVER, public_net });
    expect(body).toMatchObject({ server: { public_net: { ipv4: null, ipv6: null } } });
  });

  test('user-data of 32,768 bytes: taken; one byte more, counted as UTF-8: 422', async () => {
    await using api = await startStub();
    const fits = 'é'.repeat(16_384);
    expect((await api.call('POST', '/servers', { ...SERVER, user_data: fits })).status).toBe(201);
    const answer = await api.call('POST', '/servers', { ...SERVER, name: 'app-2', user_data: `${fits}x` });
    expect(refusalOf(answer)).toEqual({ status: 422, code: 'invalid_input', fields: ['user_data'] });
  });

  test.each([
    ['name', { name: 'under_score' }],
    ['name', { name: '-x' }],
    ['name', { name: 'a'.repeat(64) }],
    ['labels.bad:key', { labels: { 'bad:key': 'x' } }],
    ['labels.key', { labels: { key: 'a:b' } }],
    ['image', { image: 161547270 }],
  ])('invalid %s: 422', async (field, change) => {
    await using api = await startStub();
    const answer = await api.call('POST', '/servers', { ...SERVER, ...change });
    expect(refusalOf(answer)).toEqual({ status: 422, code: 'invalid_input', fields: [field] });
  });

  test.each([
    ['server type', { server_type: 'cx22' }],
    ['image', { image: 'ubuntu-2.04' }],
    ['location', { location: 'mars' }],
    ['SSH key', { ssh_keys: ['nobody'] }],
    ['firewall', { firewalls: [{ firewall: 99 }] }],
    ['placement group', { placement_group: 99 }],
  ])('unknown %s: 404, and no server', async (what, change) => {
    await using api = await startStub();
    const answer = await api.call('POST', '/servers', { ...SERVER, ...change });
    expect(answer.status).toBe(404);
    expect(answer.body).toMatchObject({ error: { code: 'not_found', message: `${what} not found` } });
    expect(namesOf(await api.call('GET', '/servers'), 'servers')).toEqual([]);
  });

  test('type not offered in the location: 422', async () => {
    await using api = await startStub();
    const answer = await api.call('POST', '/servers', { ...SERVER, location: 'ash' });
    expect(answer.status).toBe(422);
    expect(answer.body).toMatchObject({ error: { message: 'unsupported location for server type' } });
  });

  test('type sold out in the location: 412; elsewhere: 201', async () => {
    await using api = await startStub({ catalogue: { soldOut: [{ serverType: 'cx23', location: 'fsn1' }] } });
    const answer = await api.call('POST', '/servers', SERVER);
    expect([answer.status, codeOf(answer)]).toEqual([412, 'resource_unavailable']);
    expect((await api.call('POST', '/servers', { ...SERVER, location: 'nbg1' })).status).toBe(201);
  });

  test('name taken: 409 uniqueness_error naming the field', async () => {
    await using api = await startStub();
    await api.create('servers', SERVER);
    const answer = await api.call('POST', '/servers', SERVER);
    expect(refusalOf(answer)).toEqual({ status: 409, code: 'uniqueness_error', fields: ['name'] });
  });

  test('eleventh server of a placement group: 422', async () => {
    await using api = await startStub();
    const placement_group = await api.create('placement_groups', { name: 'spread', type: 'spread' });
    for (let i = 1; i <= 10; i += 1) await api.create('servers', { ...SERVER, name: `s${i}`, placement_group });
    const answer = await api.call('POST', '/servers', { ...SERVER, name: 's11', placement_group });
    expect([answer.status, codeOf(answer)]).toEqual([422, 'placement_group_member_limit_reached']);
  });
});

describe('list', () => {
  test('by name, status and label', async () => {
    await using api = await startStub();
    await api.create('servers', { ...SERVER, name: 'a', labels: { pool: 'x' } });
    api.advance(2 * ACTION_MS);
    await api.create('servers', { ...SERVER, name: 'b', labels: { pool: 'y' } });
    const list = async (query: string) => namesOf(await api.call('GET', `/servers?${query}`), 'servers');
    expect(await list('name=b')).toEqual(['b']);
    expect(await list('status=running')).toEqual(['a']);
    expect(await list('status=running&status=initializing')).toEqual(['a', 'b']);
    expect(await list('label_selector=pool%20notin%20(x)')).toEqual(['b']);
  });

  test('bad label selector: 422', async () => {
    await using api = await startStub();
    const answer = await api.call('GET', '/servers?label_selector=a%20b');
    expect(refusalOf(answer)).toEqual({ status: 422, code: 'invalid_input', fields: ['label_selector'] });
  });
});

describe('change', () => {
  test('PUT: labels are replaced, a taken name is refused', async () => {
    await using api = await startStub();
    const id = await api.create('servers', { ...SERVER, labels: { a: '1' } });
    await api.create('servers', { ...SERVER, name: 'other' });
    const answer = await api.call('PUT', `/servers/${id}`, { labels: { b: '2' } });
    expect(answer.body).toMatchObject({ server: { name: 'app-1' } });
    expect((answer.body as { server: { labels: unknown } }).server.labels).toEqual({ b: '2' });
    expect((await api.call('PUT', `/servers/${id}`, { name: 'other' })).status).toBe(409);
    expect((await api.call('PUT', `/servers/${id}`, { name: 'app-1' })).status).toBe(200);
  });

  test.each([
    ['poweroff', 'stop_server', 'stopping', 'off'],
    ['shutdown', 'shutdown_server', 'stopping', 'off'],
    ['reset', 'reset_server', 'running', 'running'],
    ['poweron', 'start_server', 'running', 'running'],
  ])('%s of a running server: %s, %s, then %s', async (route, command, meanwhile, then) => {
    await using api = await startStub();
    const id = await api.create('servers', SERVER);
    api.advance(2 * ACTION_MS);
    const answer = await api.call('POST', `/servers/${id}/actions/${route}`);
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ action: { command, status: 'running' } });
    expect(await statusOf(api, id)).toBe(meanwhile);
    api.advance(ACTION_MS);
    expect(await statusOf(api, id)).toBe(then);
  });

  test('while an action runs: 423 locked', async () => {
    await using api = await startStub();
    const id = await api.create('servers', SERVER);
    const answer = await api.call('DELETE', `/servers/${id}`);
    expect([answer.status, codeOf(answer)]).toEqual([423, 'locked']);
  });
});

describe('delete', () => {
  test('deleting: 200 with an action, the name stays taken, then both are gone', async () => {
    await using api = await startStub();
    const id = await api.create('servers', SERVER);
    api.advance(2 * ACTION_MS);
    const answer = await api.call('DELETE', `/servers/${id}`);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ action: { command: 'delete_server', status: 'running' } });
    expect(await statusOf(api, id)).toBe('deleting');
    expect((await api.call('POST', '/servers', SERVER)).status).toBe(409);
    api.advance(ACTION_MS);
    expect((await api.call('GET', `/servers/${id}`)).status).toBe(404);
    expect((await api.call('GET', '/actions/5')).body).toMatchObject({ action: { status: 'success' } });
    expect((await api.call('POST', '/servers', SERVER)).body).toMatchObject({ server: { id: 6 } });
  });

  test('actions of the server: listed while it exists', async () => {
    await using api = await startStub();
    const id = await api.create('servers', SERVER);
    expect((await api.call('GET', `/servers/${id}/actions`)).body).toMatchObject({
      actions: [{ command: 'create_server' }, { command: 'start_server' }],
    });
    expect((await api.call('GET', `/servers/${id}/actions/3`)).status).toBe(200);
    expect((await api.call('GET', '/servers/99/actions')).status).toBe(404);
  });
});
