import { describe, expect, test } from 'vitest';
import { ACTION_MS, codeOf, namesOf, refusalOf, SERVER, startStub } from './support.ts';

const SSH = { direction: 'in', protocol: 'tcp', port: '22', source_ips: ['0.0.0.0/0', '2001:DB8:0:0::/64'] };

describe('create', () => {
  test('201: rules in canonical form, one set_firewall_rules action', async () => {
    await using api = await startStub();
    const answer = await api.call('POST', '/firewalls', { name: 'fw', rules: [SSH], labels: { a: 'b' } });
    expect(answer.status).toBe(201);
    expect(answer.body).toEqual({
      firewall: {
        id: 2,
        name: 'fw',
        labels: { a: 'b' },
        created: '2026-11-30T00:00:00+00:00',
        rules: [
          {
            description: null,
            direction: 'in',
            protocol: 'tcp',
            port: '22',
            source_ips: ['0.0.0.0/0', '2001:db8::/64'],
            destination_ips: [],
          },
        ],
        applied_to: [],
      },
      actions: [expect.objectContaining({ command: 'set_firewall_rules', resources: [{ id: 2, type: 'firewall' }] })],
    });
  });

  test.each([
    ['rules.0.source_ips.0', { source_ips: ['10.0.0.1/8'] }],
    ['rules.0.source_ips', { source_ips: Array.from({ length: 101 }, (_, i) => `10.0.${i}.0/24`) }],
    ['rules.0.source_ips', { source_ips: [] }],
    ['rules.0.port', { port: '0' }],
    ['rules.0.port', { port: '65536' }],
    ['rules.0.port', { port: '5000-1024' }],
    ['rules.0.port', { port: 'ssh' }],
    ['rules.0.port', { port: null }],
    ['rules.0.port', { protocol: 'icmp' }],
    ['rules.0.protocol', { protocol: 'sctp' }],
    ['rules.0.destination_ips', { destination_ips: ['10.0.0.0/8'] }],
  ])('bad %s: 422', async (field, change) => {
    await using api = await startStub();
    const answer = await api.call('POST', '/firewalls', { name: 'fw', rules: [{ ...SSH, ...change }] });
    expect(refusalOf(answer)).toEqual({ status: 422, code: 'invalid_input', fields: [field] });
  });

  test('51 rules: 422; 50: taken', async () => {
    await using api = await startStub();
    const rules = Array.from({ length: 51 }, () => SSH);
    expect((await api.call('POST', '/firewalls', { name: 'fw', rules })).status).toBe(422);
    expect((await api.call('POST', '/firewalls', { name: 'fw', rules: rules.slice(1) })).status).toBe(201);
  });

  test('name of 129 characters: 422; name taken: 409', async () => {
    await using api = await startStub();
    await api.create('firewalls', { name: 'fw' });
    expect((await api.call('POST', '/firewalls', { name: 'f'.repeat(129) })).status).toBe(422);
    const answer = await api.call('POST', '/firewalls', { name: 'fw' });
    expect(refusalOf(answer)).toEqual({ status: 409, code: 'uniqueness_error', fields: ['name'] });
  });
});

describe('before a server', () => {
  test('named in the create request: pending, applied when create_server has succeeded', async () => {
    await using api = await startStub();
    const firewall = await api.create('firewalls', { name: 'fw' });
    const id = await api.create('servers', { ...SERVER, firewalls: [{ firewall }] });
    const states = async () => (await api.call('GET', `/servers/${id}`)).body;
    expect(await states()).toMatchObject({
      server: { public_net: { firewalls: [{ id: firewall, status: 'pending' }] } },
    });
    api.advance(ACTION_MS);
    expect(await states()).toMatchObject({
      server: { public_net: { firewalls: [{ id: firewall, status: 'applied' }] } },
    });
  });

  test('set_rules: replaces all, pending on the server until apply_firewall is done', async () => {
    await using api = await startStub();
    const firewall = await api.create('firewalls', { name: 'fw', rules: [SSH] });
    const id = await api.create('servers', { ...SERVER, firewalls: [{ firewall }] });
    api.advance(2 * ACTION_MS);
    const rules = [{ direction: 'in', protocol: 'icmp', source_ips: ['::/0'] }];
    const answer = await api.call('POST', `/firewalls/${firewall}/actions/set_rules`, { rules });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({
      actions: [
        { command: 'set_firewall_rules', resources: [{ id: firewall, type: 'firewall' }] },
        {
          command: 'apply_firewall',
          resources: [
            { id: firewall, type: 'firewall' },
            { id, type: 'server' },
          ],
        },
      ],
    });
    const applied = async () => (await api.call('GET', `/servers/${id}`)).body;
    expect(await applied()).toMatchObject({ server: { public_net: { firewalls: [{ status: 'pending' }] } } });
    api.advance(ACTION_MS);
    expect(await applied()).toMatchObject({ server: { public_net: { firewalls: [{ status: 'applied' }] } } });
    expect((await api.call('GET', `/firewalls/${firewall}`)).body).toMatchObject({
      firewall: { rules: [{ protocol: 'icmp', port: null, source_ips: ['::/0'] }] },
    });
  });

  test('applied, applied again, removed, removed again', async () => {
    await using api = await startStub();
    const firewall = await api.create('firewalls', { name: 'fw' });
    const server = await api.create('servers', SERVER);
    api.advance(2 * ACTION_MS);
    const change = (verb: string, key: string) =>
      api.call('POST', `/firewalls/${firewall}/actions/${verb}`, {
        [key]: [{ type: 'server', server: { id: server } }],
      });
    expect((await change('apply_to_resources', 'apply_to')).status).toBe(201);
    expect(codeOf(await change('apply_to_resources', 'apply_to'))).toBe('firewall_already_applied');
    expect((await change('remove_from_resources', 'remove_from')).status).toBe(201);
    api.advance(ACTION_MS);
    expect((await api.call('GET', `/firewalls/${firewall}`)).body).toMatchObject({ firewall: { applied_to: [] } });
    expect(codeOf(await change('remove_from_resources', 'remove_from'))).toBe('firewall_already_removed');
  });

  test('by label selector: stands before the servers it holds for', async () => {
    await using api = await startStub();
    const server = await api.create('servers', { ...SERVER, labels: { pool: 'app' } });
    const selector = { type: 'label_selector', label_selector: { selector: 'pool=app' } };
    const { body } = await api.call('POST', '/firewalls', { name: 'fw', apply_to: [selector] });
    expect(body).toMatchObject({
      firewall: { applied_to: [{ ...selector, applied_to_resources: [{ type: 'server', server: { id: server } }] }] },
    });
    expect((await api.call('GET', `/servers/${server}`)).body).toMatchObject({
      server: { public_net: { firewalls: [{ status: 'applied' }] } },
    });
  });
});

describe('delete', () => {
  test('in use, and while its server is being deleted: 422; then 204', async () => {
    await using api = await startStub();
    const firewall = await api.create('firewalls', { name: 'fw' });
    const server = await api.create('servers', { ...SERVER, firewalls: [{ firewall }] });
    api.advance(2 * ACTION_MS);
    expect(codeOf(await api.call('DELETE', `/firewalls/${firewall}`))).toBe('resource_in_use');
    await api.call('DELETE', `/servers/${server}`);
    expect(codeOf(await api.call('DELETE', `/firewalls/${firewall}`))).toBe('resource_in_use');
    api.advance(ACTION_MS);
    expect((await api.call('DELETE', `/firewalls/${firewall}`)).status).toBe(204);
    expect(namesOf(await api.call('GET', '/firewalls'), 'firewalls')).toEqual([]);
  });
});

test('PUT: conflict while the rules are being set, done afterwards', async () => {
  await using api = await startStub();
  const firewall = await api.create('firewalls', { name: 'fw' });
  expect(codeOf(await api.call('PUT', `/firewalls/${firewall}`, { name: 'new' }))).toBe('conflict');
  api.advance(ACTION_MS);
  expect((await api.call('PUT', `/firewalls/${firewall}`, { name: 'new' })).body).toMatchObject({
    firewall: { name: 'new' },
  });
});
