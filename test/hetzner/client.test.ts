import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import type { CreateServerRequest } from '../../src/hetzner/api.ts';
import { createHetznerClient } from '../../src/hetzner/client.ts';
import { AmbiguousCreateError, HetznerError } from '../../src/hetzner/errors.ts';
import { jumpingClock, problem, type ScriptedAnswer, scriptedApi } from './support.ts';

const TOKEN = 'canary-7Hc4Vq9xT2mZ/+token';
const lastPage = { pagination: { next_page: null } };
const locations = (...names: string[]) => names.map((name, index) => ({ id: index + 1, name }));
const answered: ScriptedAnswer = { status: 200, body: { locations: locations('fsn1'), meta: lastPage } };

const request: CreateServerRequest = {
  name: 'app-fsn1-7k2m',
  serverType: 'cx33',
  location: 'fsn1',
  imageId: 9,
  sshKeyIds: [3],
  firewallId: 5,
  placementGroupId: null,
  labels: { 'pushleft.node_id': 'n1' },
  userData: '#!/bin/bash\n',
};

async function against(...answers: ScriptedAnswer[]) {
  const server = await scriptedApi(...answers);
  const clock = jumpingClock();
  const warnings: unknown[] = [];
  const log = { warn: (fields: object, message: string) => void warnings.push({ ...fields, message }) };
  const options = { baseUrl: server.baseUrl, token: TOKEN, clock, random: () => 0, log, requestTimeoutMs: 2_000 };
  return {
    server,
    clock,
    warnings,
    api: createHetznerClient(options),
    [Symbol.asyncDispose]: server[Symbol.asyncDispose],
  };
}

const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable('must fail'),
    (error: unknown) => error,
  );

describe('lists', () => {
  test('three pages: followed to the end', async () => {
    const page = (name: string, next_page: number | null): ScriptedAnswer => ({
      status: 200,
      body: { locations: locations(name), meta: { pagination: { next_page } } },
    });
    await using world = await against(page('fsn1', 2), page('nbg1', 3), page('hel1', null));
    expect((await world.api.listLocations()).map(({ name }) => name)).toEqual(['fsn1', 'nbg1', 'hel1']);
    expect(world.server.seen.map(({ url }) => url)).toEqual([
      '/v1/locations?page=1&per_page=50',
      '/v1/locations?page=2&per_page=50',
      '/v1/locations?page=3&per_page=50',
    ]);
  });

  test('a next page that is not later: an error, no endless loop', async () => {
    await using world = await against({ status: 200, body: { locations: [], meta: { pagination: { next_page: 1 } } } });
    expect(await failure(world.api.listLocations())).toMatchObject({ code: 'answer_unreadable' });
  });

  test('node id: label selector', async () => {
    await using world = await against({ status: 200, body: { servers: [], meta: lastPage } });
    expect(await world.api.findServersOfNode('abc')).toEqual([]);
    expect(new URL(world.server.seen[0]?.url ?? '', 'http://x').searchParams.get('label_selector')).toBe(
      'pushleft.node_id=abc',
    );
  });

  test('26 actions: two requests', async () => {
    await using world = await against({ status: 200, body: { actions: [] } });
    await world.api.getActions(Array.from({ length: 26 }, (_, index) => index + 1));
    expect(world.server.seen.map(({ url }) => url.match(/id=/g)?.length)).toEqual([25, 1]);
  });
});

describe('repeating', () => {
  test('5xx, dropped connection, 5xx, then an answer: four attempts with back-off', async () => {
    await using world = await against(problem(503, 'unavailable'), 'drop', problem(500, 'server_error'), answered);
    expect(await world.api.listLocations()).toHaveLength(1);
    expect(world.clock.slept).toEqual([250, 500, 1_000]);
  });

  test('5xx for ever: the fourth attempt is the last', async () => {
    await using world = await against(problem(502, 'bad_gateway', { 'x-correlation-id': 'c0ffee' }));
    const error = await failure(world.api.listLocations());
    expect(error).toMatchObject({ code: 'bad_gateway', status: 502, correlationId: 'c0ffee' });
    expect(world.server.seen).toHaveLength(4);
  });

  test('429 with Retry-After, then an answer: waited for once', async () => {
    await using world = await against(problem(429, 'rate_limit_exceeded', { 'retry-after': '3' }), answered);
    expect(await world.api.listLocations()).toHaveLength(1);
    expect(world.clock.slept).toEqual([3_000]);
  });

  test('429 for ever: ends within the budget', async () => {
    await using world = await against(problem(429, 'rate_limit_exceeded', { 'retry-after': '50' }));
    expect(await failure(world.api.listLocations())).toMatchObject({ code: 'rate_limit_exceeded' });
    expect(world.clock.slept).toEqual([50_000, 50_000]);
  });

  test('4xx: not repeated, names the fields', async () => {
    const details = { fields: [{ name: 'rules.0', messages: ['bad'] }] };
    await using world = await against({
      status: 422,
      body: { error: { code: 'invalid_input', message: 'no', details } },
    });
    const error = await failure(world.api.setFirewallRules(5, []));
    expect(error).toMatchObject({ code: 'invalid_input', status: 422 });
    expect(String(error)).toContain('(rules.0)');
    expect(world.server.seen).toHaveLength(1);
  });

  test('locked server: power-on is repeated', async () => {
    const action = { id: 8, command: 'start_server', status: 'running', error: null };
    await using world = await against(problem(423, 'locked'), { status: 201, body: { action } });
    expect(await world.api.powerOnServer(1)).toMatchObject({ id: 8 });
  });

  test('deleted already: undefined', async () => {
    await using world = await against('drop', problem(404, 'not_found'));
    expect(await world.api.deleteServer(1)).toBeUndefined();
  });

  test('redirect: not followed', async () => {
    await using elsewhere = await scriptedApi(answered);
    await using world = await against({ status: 302, headers: { location: `${elsewhere.baseUrl}/locations` } });
    expect(await failure(world.api.listLocations())).toMatchObject({ code: 'http_302' });
    expect(elsewhere.seen).toEqual([]);
  });

  test('aborted: no further attempt', async () => {
    await using server = await scriptedApi(problem(500, 'server_error'));
    const abort = new AbortController();
    const clock = { now: () => 0, sleep: async () => abort.abort(new Error('stopped')) };
    const api = createHetznerClient({
      baseUrl: server.baseUrl,
      token: TOKEN,
      clock,
      random: () => 0,
      signal: abort.signal,
    });
    expect(String(await failure(api.listLocations()))).toBe('Error: stopped');
    expect(server.seen).toHaveLength(1);
  });
});

describe('creating a server', () => {
  test('dropped, 500, 502, 504 or an unreadable 201: ambiguous, sent once', async () => {
    for (const answer of [
      'drop',
      problem(500, 'server_error'),
      problem(502, 'bad_gateway'),
      { status: 504, text: '<html>' },
      { status: 201, text: '{"server"' },
    ] as const) {
      await using world = await against(answer);
      expect(await failure(world.api.createServer(request))).toBeInstanceOf(AmbiguousCreateError);
      expect(world.server.seen).toHaveLength(1);
    }
  });

  test('no answer in time: ambiguous', async () => {
    await using world = await against(answered);
    const hangs = () => new Promise<never>(() => {});
    const options = {
      baseUrl: world.server.baseUrl,
      token: TOKEN,
      clock: world.clock,
      random: () => 0,
      requestTimeoutMs: 20,
      fetch: hangs,
    };
    const error = await failure(createHetznerClient(options).createServer(request));
    expect(error).toBeInstanceOf(AmbiguousCreateError);
    expect(error).toMatchObject({ code: 'timeout', status: null });
  });

  test('429, then 409: repeated after the wait, then refused', async () => {
    await using world = await against(
      problem(429, 'rate_limit_exceeded', { 'retry-after': '1' }),
      problem(409, 'uniqueness_error'),
    );
    const error = await failure(world.api.createServer(request));
    expect(error).toMatchObject({ name: 'HetznerError', code: 'uniqueness_error', status: 409 });
    expect(world.server.seen).toHaveLength(2);
  });

  test('one request: labels, firewall, keys and user-data are in it', async () => {
    await using world = await against(problem(403, 'resource_limit_exceeded'));
    await failure(world.api.createServer({ ...request, placementGroupId: 6 }));
    expect(world.server.seen[0]).toMatchObject({ method: 'POST', url: '/v1/servers' });
    expect(world.server.seen[0]?.body).toEqual({
      name: 'app-fsn1-7k2m',
      server_type: 'cx33',
      location: 'fsn1',
      image: 9,
      ssh_keys: [3],
      firewalls: [{ firewall: 5 }],
      placement_group: 6,
      labels: { 'pushleft.node_id': 'n1' },
      user_data: '#!/bin/bash\n',
      start_after_create: true,
    });
  });
});

describe('the token', () => {
  const forms = [
    TOKEN,
    encodeURIComponent(TOKEN),
    Buffer.from(TOKEN).toString('base64'),
    Buffer.from(TOKEN).toString('hex'),
  ];
  const leaks = (value: unknown) => {
    const shown = [inspect(value, { depth: 20, showHidden: true }), JSON.stringify(value), String(value)].join('\n');
    return forms.filter((form) => shown.includes(form));
  };

  test('planted in an object: the scan finds it', () => expect(leaks({ deep: { headers: [TOKEN] } })).toEqual([TOKEN]));

  test('sent as bearer, and in no error, log line or inspection', async () => {
    const echo = (status: number): ScriptedAnswer => ({
      status,
      body: { error: { code: 'unauthorized', message: `${forms.join(' ')} is not known` } },
    });
    for (const answer of ['drop', echo(401), echo(500), { status: 200, text: TOKEN }] as const) {
      await using world = await against(answer);
      const error = await failure(world.api.listLocations());
      expect(error).toBeInstanceOf(HetznerError);
      expect(leaks([error, world.warnings, world.api])).toEqual([]);
      expect(world.server.seen[0]?.authorization).toBe(`Bearer ${TOKEN}`);
    }
  });

  test('plain http to another machine: refused before any call', () => {
    const options = { token: TOKEN, clock: jumpingClock(), random: () => 0 };
    expect(() => createHetznerClient({ ...options, baseUrl: 'http://api.example.org/v1' })).toThrow(TypeError);
    expect(() => createHetznerClient({ ...options, baseUrl: 'http://127.0.0.1.example.org/v1' })).toThrow(TypeError);
  });
});
