import { describe, expect, test } from 'vitest';
import { FaultPlan, type FaultPlanInput } from '../../../stubs/hetzner/faults.ts';
import { waitFor } from '../../support/wait-for.ts';
import { ACTION_MS, codeOf, namesOf, SERVER, startStub } from './support.ts';

const CREATE = { method: 'POST', path: '/v1/servers' } as const;

describe('status', () => {
  const faults: FaultPlanInput = [
    {
      match: CREATE,
      nth: 2,
      fault: { kind: 'status', status: 429, code: 'rate_limit_exceeded', headers: { 'Retry-After': '7' } },
    },
  ];

  test('second create: that error with its headers, nothing is created; the third passes', async () => {
    await using api = await startStub({ faults });
    expect((await api.call('POST', '/servers', SERVER)).status).toBe(201);
    const answer = await api.call('POST', '/servers', { ...SERVER, name: 'b' });
    expect([answer.status, codeOf(answer), answer.headers.get('retry-after')]).toEqual([
      429,
      'rate_limit_exceeded',
      '7',
    ]);
    expect(answer.headers.get('ratelimit-remaining')).toBe('3598');
    expect((await api.call('POST', '/servers', { ...SERVER, name: 'c' })).status).toBe(201);
    expect(namesOf(await api.call('GET', '/servers'), 'servers')).toEqual(['app-1', 'c']);
  });
});

describe('lost connections', () => {
  test('drop: the connection breaks, nothing was done', async () => {
    await using api = await startStub({ faults: [{ match: CREATE, nth: 1, fault: { kind: 'drop' } }] });
    await expect(api.call('POST', '/servers', SERVER)).rejects.toThrow('fetch failed');
    expect(namesOf(await api.call('GET', '/servers'), 'servers')).toEqual([]);
    expect(api.stub.requests()[0]).toMatchObject({ method: 'POST', path: '/v1/servers', status: null });
  });

  test('lose_response: the connection breaks, the server is there', async () => {
    await using api = await startStub({ faults: [{ match: CREATE, nth: 1, fault: { kind: 'lose_response' } }] });
    await expect(api.call('POST', '/servers', SERVER)).rejects.toThrow('fetch failed');
    expect(namesOf(await api.call('GET', '/servers'), 'servers')).toEqual(['app-1']);
  });

  test('handle_then_status: 502, the server is there', async () => {
    await using api = await startStub({ faults: [{ match: CREATE, nth: 1, fault: { kind: 'handle_then_status' } }] });
    const answer = await api.call('POST', '/servers', SERVER);
    expect([answer.status, codeOf(answer)]).toEqual([502, 'bad_gateway']);
    expect(answer.body).not.toHaveProperty('server');
    expect(namesOf(await api.call('GET', '/servers'), 'servers')).toEqual(['app-1']);
  });
});

describe('actions', () => {
  const planned = (fault: FaultPlanInput[number]['fault']): FaultPlanInput => [{ match: CREATE, fault }];

  test('action_error of start_server: create_server succeeds, the server stays off', async () => {
    const fault = { kind: 'action_error', command: 'start_server', code: 'server_error', message: 'no' } as const;
    await using api = await startStub({ faults: planned(fault) });
    await api.create('servers', SERVER);
    api.advance(2 * ACTION_MS);
    expect((await api.call('GET', '/actions?id=3&id=4')).body).toMatchObject({
      actions: [
        { command: 'create_server', status: 'success', error: null },
        { command: 'start_server', status: 'error', error: { code: 'server_error', message: 'no' } },
      ],
    });
    expect((await api.call('GET', '/servers/2')).body).toMatchObject({ server: { status: 'off', locked: false } });
  });

  test('action_error of create_server: start_server fails with it', async () => {
    await using api = await startStub({ faults: planned({ kind: 'action_error', command: 'create_server' }) });
    await api.create('servers', SERVER);
    api.advance(2 * ACTION_MS);
    expect((await api.call('GET', '/actions?id=3&id=4')).body).toMatchObject({
      actions: [
        { status: 'error', error: { code: 'action_failed', message: 'Action failed' } },
        { status: 'error', error: { code: 'action_failed', message: 'Action failed' } },
      ],
    });
  });

  test('never_finishes: still running after a day', async () => {
    await using api = await startStub({ faults: planned({ kind: 'never_finishes', command: 'start_server' }) });
    await api.create('servers', SERVER);
    api.advance(86_400_000);
    expect((await api.call('GET', '/actions/4')).body).toMatchObject({ action: { status: 'running', error: null } });
    expect((await api.call('GET', '/servers/2')).body).toMatchObject({ server: { status: 'starting', locked: true } });
  });

  test('delete_server that fails: the server stays, off', async () => {
    const match = { method: 'DELETE', path: '/v1/servers/*' } as const;
    await using api = await startStub({ faults: [{ match, fault: { kind: 'action_error' } }] });
    await api.create('servers', SERVER);
    api.advance(2 * ACTION_MS);
    await api.call('DELETE', '/servers/2');
    api.advance(ACTION_MS);
    expect((await api.call('GET', '/servers/2')).body).toMatchObject({ server: { status: 'off' } });
  });
});

test('headers: the answer is right but for them', async () => {
  const fault = { kind: 'headers', headers: { 'RateLimit-Remaining': '0' } } as const;
  await using api = await startStub({ faults: [{ match: { path: '/v1/**' }, fault }] });
  const answer = await api.call('GET', '/servers');
  expect([answer.status, answer.headers.get('ratelimit-remaining')]).toEqual([200, '0']);
});

test('delay: the answer comes after it', async () => {
  await using api = await startStub({
    faults: [{ match: { path: '/v1/servers' }, fault: { kind: 'delay', delayMs: 150 } }],
  });
  const startedAt = performance.now();
  expect((await api.call('GET', '/servers')).status).toBe(200);
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(145);
});

test('delayed create whose sender dies meanwhile: the server comes all the same', async () => {
  const fault = { kind: 'delay', delayMs: 300 } as const;
  await using api = await startStub({ faults: [{ match: CREATE, fault }] });
  const dying = new AbortController();
  const init = { method: 'POST', headers: { authorization: 'Bearer x' }, body: JSON.stringify(SERVER) };
  const request = fetch(`${api.url}/servers`, { ...init, signal: dying.signal });
  await waitFor(() => api.stub.requests().length === 1, { what: 'the create has arrived' });
  dying.abort();
  await expect(request).rejects.toThrow('aborted');
  await waitFor(() => api.stub.state().servers.length === 1, { what: 'the server is there' });
  expect(api.stub.requests()[0]?.status).toBeNull();
});

test('closed while a create is delayed: it is dropped', async () => {
  const fault = { kind: 'delay', delayMs: 60_000 } as const;
  const api = await startStub({ faults: [{ match: CREATE, fault }] });
  const request = api.call('POST', '/servers', SERVER).catch((error: unknown) => String(error));
  await waitFor(() => api.stub.requests().length === 1, { what: 'the create has arrived' });
  await api[Symbol.asyncDispose]();
  expect(await request).toBe('TypeError: fetch failed');
  expect(api.stub.state().servers).toEqual([]);
});

describe('whose turn it is', () => {
  const struck = (plan: FaultPlanInput[number], requests: string[]): boolean[] => {
    const faults = new FaultPlan();
    faults.replace([plan]);
    return requests.map((request) => {
      const [method = '', path = ''] = request.split(' ');
      return faults.strike(method, path) !== undefined;
    });
  };
  const fault = { kind: 'drop' } as const;
  const lists = Array.from({ length: 6 }, () => 'GET /v1/servers');

  test.each([
    [{}, [true, true, true, true, true, true]],
    [{ nth: 3 }, [false, false, true, false, false, false]],
    [{ from: 3 }, [false, false, true, true, true, true]],
    [{ from: 2, to: 3 }, [false, true, true, false, false, false]],
    [{ from: 2, every: 2 }, [false, true, false, true, false, true]],
  ])('%o of six requests', (turns, expected) => {
    expect(struck({ match: { path: '/v1/servers' }, ...turns, fault }, lists)).toEqual(expected);
  });

  test('path pattern: * is one segment, ** any number; only matching requests count', () => {
    const requests = ['GET /v1/servers', 'GET /v1/servers/7', 'POST /v1/servers/7', 'GET /v1/servers/7/actions'];
    expect(struck({ match: { method: 'GET', path: '/v1/servers/*' }, fault }, requests)).toEqual([
      false,
      true,
      false,
      false,
    ]);
    expect(struck({ match: { path: '/v1/servers/**' }, nth: 2, fault }, requests)).toEqual([false, false, true, false]);
  });

  test.each([
    { match: { path: '/v1/servers' }, nth: 1, from: 1, fault },
    { match: { path: 'v1/servers' }, fault },
    { match: { path: '/v1/servers' }, fault: { kind: 'status', status: 200, code: 'fine' } },
    { match: { path: '/v1/servers' }, fault: { kind: 'explode' } },
    { match: { path: '/v1/servers' }, fault, extra: true },
  ])('plan %o: refused', (planned) => {
    expect(() => new FaultPlan().replace([planned])).toThrow();
  });
});

describe('/_stub', () => {
  const ask = (url: string, path: string, init?: RequestInit) => fetch(new URL(path, url), init);

  test('faults are replaced at run time, and their counters are shown', async () => {
    await using api = await startStub();
    const plan = [
      { match: { path: '/v1/servers' }, nth: 1, fault: { kind: 'status', status: 503, code: 'unavailable' } },
    ];
    const put = await ask(api.url, '/_stub/faults', { method: 'PUT', body: JSON.stringify(plan) });
    expect(put.status).toBe(204);
    expect((await api.call('GET', '/servers')).status).toBe(503);
    expect(await (await ask(api.url, '/_stub/faults')).json()).toEqual({ faults: [{ ...plan[0], seen: 1 }] });
  });

  test('bad plan: 422, the old one stays', async () => {
    await using api = await startStub({ faults: [{ match: { path: '/v1/servers' }, fault: { kind: 'drop' } }] });
    expect((await ask(api.url, '/_stub/faults', { method: 'PUT', body: '[{}]' })).status).toBe(422);
    expect((await ask(api.url, '/_stub/faults', { method: 'PUT', body: '[' })).status).toBe(422);
    await expect(api.call('GET', '/servers')).rejects.toThrow('fetch failed');
  });

  test('requests: method, path, query, status; no bodies, no tokens', async () => {
    await using api = await startStub();
    await api.call('POST', '/servers', { ...SERVER, user_data: 'canary' });
    await api.call('GET', '/servers?name=app-1', undefined, { authorization: 'Bearer canary' });
    const text = await (await ask(api.url, '/_stub/requests')).text();
    expect(JSON.parse(text)).toMatchObject({
      requests: [
        { method: 'POST', path: '/v1/servers', query: '', status: 201 },
        { method: 'GET', path: '/v1/servers', query: '?name=app-1', status: 200 },
      ],
    });
    expect(text).not.toContain('canary');
  });

  test('state: user-data only as size and digest', async () => {
    await using api = await startStub();
    await api.call('POST', '/servers', { ...SERVER, user_data: 'canary' });
    const text = await (await ask(api.url, '/_stub/state')).text();
    expect(JSON.parse(text)).toMatchObject({ servers: [{ name: 'app-1', userDataBytes: 6 }] });
    expect(text).not.toContain('canary');
  });
});
