import { describe, expect, test } from 'vitest';
import { codeOf, namesOf, refusalOf, SERVER, START_MS, startStub } from './support.ts';

describe('every answer', () => {
  test('carries a correlation id and the state of the rate limit', async () => {
    await using api = await startStub();
    const { headers } = await api.call('GET', '/servers');
    expect(headers.get('x-correlation-id')).toMatch(/^[0-9a-f]{32}$/);
    expect(headers.get('ratelimit-limit')).toBe('3600');
    expect(headers.get('ratelimit-remaining')).toBe('3599');
    expect(headers.get('ratelimit-reset')).toBe(String(START_MS / 1000 + 1));
  });

  test.each([undefined, 'Bearer ', 'Basic dGVzdA==', 'Bearer wrong'])(
    'authorization %s: 401',
    async (authorization) => {
      await using api = await startStub({ token: 'right' });
      const headers = authorization === undefined ? {} : { authorization };
      const response = await fetch(`${api.url}/servers`, { headers });
      expect(response.status).toBe(401);
      expect(await response.json()).toEqual({
        error: { code: 'unauthorized', message: 'unable to authenticate', details: {} },
      });
      expect(response.headers.get('ratelimit-remaining')).toBe('3599');
    },
  );

  test('the right token: 200', async () => {
    await using api = await startStub({ token: 'right' });
    expect((await api.call('GET', '/servers', undefined, { authorization: 'Bearer right' })).status).toBe(200);
  });

  test('unknown path, unknown id: 404 not_found', async () => {
    await using api = await startStub();
    expect(codeOf(await api.call('GET', '/volumes'))).toBe('not_found');
    expect(codeOf(await api.call('GET', '/servers/99'))).toBe('not_found');
    expect(codeOf(await api.call('GET', '/servers/app-1'))).toBe('not_found');
  });

  test('malformed JSON: 400 json_error', async () => {
    await using api = await startStub();
    const answer = await api.call('POST', '/servers', '{"name":');
    expect([answer.status, codeOf(answer)]).toEqual([400, 'json_error']);
  });

  test('missing fields: 422 naming each of them', async () => {
    await using api = await startStub();
    const answer = await api.call('POST', '/servers', {});
    expect(refusalOf(answer)).toEqual({ status: 422, code: 'invalid_input', fields: ['name', 'server_type', 'image'] });
  });
});

describe('rate limit of 2, one back a second', () => {
  const rateLimit = { limit: 2 };

  test('third request of a second: 429, reset is full recovery', async () => {
    await using api = await startStub({ rateLimit });
    await api.call('GET', '/servers');
    await api.call('GET', '/servers');
    const answer = await api.call('GET', '/servers');
    expect([answer.status, codeOf(answer)]).toEqual([429, 'rate_limit_exceeded']);
    expect(answer.headers.get('ratelimit-remaining')).toBe('0');
    expect(answer.headers.get('ratelimit-reset')).toBe(String(START_MS / 1000 + 2));
  });

  test('a second later: one request passes, the next does not', async () => {
    await using api = await startStub({ rateLimit });
    for (let i = 0; i < 3; i += 1) await api.call('GET', '/servers');
    api.advance(1000);
    expect((await api.call('GET', '/servers')).status).toBe(200);
    expect((await api.call('GET', '/servers')).status).toBe(429);
  });

  test('another token: a bucket of its own', async () => {
    await using api = await startStub({ rateLimit });
    for (let i = 0; i < 3; i += 1) await api.call('GET', '/servers');
    expect((await api.call('GET', '/servers', undefined, { authorization: 'Bearer other' })).status).toBe(200);
  });
});

describe('pages of 60 placement groups', () => {
  async function sixtyGroups() {
    const api = await startStub();
    for (let i = 1; i <= 60; i += 1) {
      const name = `g${String(i).padStart(2, '0')}`;
      await api.create('placement_groups', { name, type: 'spread', labels: { half: i <= 30 ? 'first' : 'second' } });
    }
    return api;
  }

  test('default: 25, next_page until the last', async () => {
    await using api = await sixtyGroups();
    const first = await api.call('GET', '/placement_groups');
    expect(namesOf(first, 'placement_groups')).toHaveLength(25);
    expect(first.body).toMatchObject({
      meta: {
        pagination: { page: 1, per_page: 25, previous_page: null, next_page: 2, last_page: 3, total_entries: 60 },
      },
    });
    const last = await api.call('GET', '/placement_groups?page=3');
    expect(namesOf(last, 'placement_groups')).toHaveLength(10);
    expect(last.body).toMatchObject({ meta: { pagination: { page: 3, previous_page: 2, next_page: null } } });
  });

  test('per_page=100: counts as 50, Link names the next page', async () => {
    await using api = await sixtyGroups();
    const answer = await api.call('GET', '/placement_groups?per_page=100');
    expect(namesOf(answer, 'placement_groups')).toHaveLength(50);
    expect(answer.headers.get('link')).toContain(`<${api.url}/placement_groups?per_page=100&page=2>; rel="next"`);
  });

  test('sort=name:desc with a label selector: both are honoured', async () => {
    await using api = await sixtyGroups();
    const answer = await api.call('GET', '/placement_groups?sort=name:desc&per_page=2&label_selector=half%3Dfirst');
    expect(namesOf(answer, 'placement_groups')).toEqual(['g30', 'g29']);
  });

  test('past the end: empty page; page 0 or an unknown sort: 422; unknown parameters: ignored', async () => {
    await using api = await sixtyGroups();
    expect(namesOf(await api.call('GET', '/placement_groups?page=9'), 'placement_groups')).toEqual([]);
    expect((await api.call('GET', '/placement_groups?page=0')).status).toBe(422);
    expect((await api.call('GET', '/placement_groups?sort=size')).status).toBe(422);
    expect((await api.call('GET', '/placement_groups?colour=red')).status).toBe(200);
  });
});

test('GET /actions without id: 410 with the announcement', async () => {
  await using api = await startStub();
  const answer = await api.call('GET', '/actions');
  expect([answer.status, codeOf(answer)]).toEqual([410, 'deprecated_api_endpoint']);
});

test('GET /actions?id=…&id=…: those actions', async () => {
  await using api = await startStub();
  const { body } = await api.call('POST', '/servers', SERVER);
  expect(body).toMatchObject({ action: { id: 3 }, next_actions: [{ id: 4 }] });
  expect((await api.call('GET', '/actions?id=3&id=4&id=99')).body).toMatchObject({ actions: [{ id: 3 }, { id: 4 }] });
});
