import { describe, expect, test } from 'vitest';
import { awaitRunning } from '../../src/hetzner/await-running.ts';
import { deleteServer } from '../../src/hetzner/delete-server.ts';
import { findOrCreateServer } from '../../src/hetzner/find-or-create-server.ts';
import type { FaultPlanInput } from '../../stubs/hetzner/faults.ts';
import { NAME, NODE_ID, stubWorld } from './stub-world.ts';

type World = Awaited<ReturnType<typeof stubWorld>>;
const ensure = (world: World) => findOrCreateServer(world.api, NODE_ID, world.request, world.waiting);
const onCreate = (fault: FaultPlanInput[number]['fault'], nth = 1): FaultPlanInput => [
  { match: { method: 'POST', path: '/v1/servers' }, nth, fault },
];
const creates = (world: World) => world.writes().filter((write) => write.startsWith('POST /servers ')).length;
/** A stranger's server of this name, or another of ours. */
const plant = (world: World, name: string, labels: Record<string, string>) =>
  world.api.createServer({ ...world.request, name, labels });

async function ready(world: World) {
  const ensured = await ensure(world);
  if (!ensured.ok) expect.unreachable(ensured.refusal.message);
  const running = await awaitRunning(world.api, ensured.value.server, world.waiting);
  if (!running.ok) expect.unreachable(running.refusal.message);
  return running.value;
}

describe('findOrCreateServer', () => {
  test('none there: created once, with labels, firewall and user-data, and running after its actions', async () => {
    await using world = await stubWorld();
    expect(await ensure(world)).toMatchObject({ ok: true, value: { how: 'created', server: { name: NAME } } });
    expect(world.stub.state().servers).toMatchObject([
      {
        name: NAME,
        status: 'running',
        labels: world.labels,
        userData: world.request.userData,
        firewalls: [{ id: world.request.firewallId }],
      },
    ]);
    expect(creates(world)).toBe(1);
  });

  test('asked again: adopted, nothing is created', async () => {
    await using world = await stubWorld();
    await ensure(world);
    expect(await ensure(world)).toMatchObject({ ok: true, value: { how: 'adopted' } });
    expect(creates(world)).toBe(1);
  });

  test.each<[string, FaultPlanInput[number]['fault']]>([
    ['the answer is lost', { kind: 'lose_response' }],
    ['502 after it was done', { kind: 'handle_then_status' }],
    ['504 after it was done', { kind: 'handle_then_status', status: 504, code: 'timeout' }],
  ])('created, but %s: looked up and adopted, never sent again', async (_, fault) => {
    await using world = await stubWorld();
    world.stub.setFaults(onCreate(fault));
    expect(await ensure(world)).toMatchObject({ ok: true, value: { how: 'adopted' } });
    expect(creates(world)).toBe(1);
    expect(world.stub.state().servers).toHaveLength(1);
    expect(await ready(world)).toMatchObject({ status: 'running' });
  });

  test.each<[string, FaultPlanInput[number]['fault']]>([
    ['the connection drops', { kind: 'drop' }],
    ['409 conflict', { kind: 'status', status: 409, code: 'conflict' }],
    ['502', { kind: 'status', status: 502, code: 'bad_gateway' }],
  ])('not created, %s: unresolved, and asking again creates one', async (_, fault) => {
    await using world = await stubWorld();
    world.stub.setFaults(onCreate(fault));
    expect(await ensure(world)).toMatchObject({
      ok: false,
      refusal: { code: 'server_create_unresolved', message: expect.stringContaining(NAME) },
    });
    expect(creates(world)).toBe(1);
    expect(await ensure(world)).toMatchObject({ ok: true, value: { how: 'created' } });
    expect(world.stub.state().servers).toHaveLength(1);
  });

  test('409 for our own server (a create of a dead process came late): adopted', async () => {
    await using world = await stubWorld();
    const decorated = {
      ...world.api,
      findServersOfNode: once([], (nodeId: string) => world.api.findServersOfNode(nodeId)),
    };
    await plant(world, NAME, world.labels);
    expect(await findOrCreateServer(decorated, NODE_ID, world.request, world.waiting)).toMatchObject({
      ok: true,
      value: { how: 'adopted' },
    });
    expect(world.stub.state().servers).toHaveLength(1);
  });

  test('409 for a stranger’s server: refused, not adopted', async () => {
    await using world = await stubWorld();
    await plant(world, NAME, { owner: 'anna' });
    expect(await ensure(world)).toMatchObject({
      ok: false,
      refusal: { code: 'server_name_taken', message: expect.stringContaining(NAME) },
    });
    expect(world.stub.state().servers).toHaveLength(1);
  });

  test('409 for another node’s server: refused, not adopted', async () => {
    await using world = await stubWorld();
    await plant(world, NAME, { ...world.labels, 'pushleft.node_id': '11111111-1111-4111-8111-111111111111' });
    expect(await ensure(world)).toMatchObject({ ok: false, refusal: { code: 'server_name_taken' } });
  });

  test('two servers with the label: refused, both named', async () => {
    await using world = await stubWorld();
    await plant(world, 'first', world.labels);
    await plant(world, 'second', world.labels);
    const outcome = await ensure(world);
    expect(outcome).toMatchObject({ ok: false, refusal: { code: 'server_duplicated' } });
    expect(!outcome.ok && outcome.refusal.message).toMatch(/first \(\d+\), second \(\d+\)/);
  });

  test('429 on the create: waited out, created once', async () => {
    await using world = await stubWorld();
    world.stub.setFaults(
      onCreate({ kind: 'status', status: 429, code: 'rate_limit_exceeded', headers: { 'Retry-After': '2' } }),
    );
    expect(await ensure(world)).toMatchObject({ ok: true, value: { how: 'created' } });
    expect(world.stub.state().servers).toHaveLength(1);
  });

  test.each([
    [403, 'resource_limit_exceeded', 'quota_exceeded'],
    [412, 'resource_unavailable', 'server_type_unavailable'],
    [422, 'placement_error', 'placement_impossible'],
    [422, 'invalid_input', 'server_create_refused'],
  ])('%d %s: refused as %s', async (status, code, refusal) => {
    await using world = await stubWorld();
    world.stub.setFaults(onCreate({ kind: 'status', status, code }));
    expect(await ensure(world)).toMatchObject({ ok: false, refusal: { code: refusal } });
    expect(world.stub.state().servers).toEqual([]);
  });

  test('a token that is not known: thrown, a fault and not an answer', async () => {
    await using world = await stubWorld();
    world.stub.setFaults(onCreate({ kind: 'status', status: 401, code: 'unauthorized' }));
    await expect(ensure(world)).rejects.toMatchObject({ code: 'unauthorized' });
  });

  test('create_server fails: refused, names server and action', async () => {
    await using world = await stubWorld();
    world.stub.setFaults(onCreate({ kind: 'action_error', command: 'create_server' }));
    const outcome = await ensure(world);
    expect(outcome).toMatchObject({ ok: false, refusal: { code: 'server_create_failed' } });
    expect(!outcome.ok && outcome.refusal.message).toMatch(
      /server app-fsn1-7k2m \(\d+\) exists, but create_server \(action \d+/,
    );
  });

  test('create_server never ends: the wait is bounded and names server and action', async () => {
    await using world = await stubWorld();
    world.stub.setFaults(onCreate({ kind: 'never_finishes', command: 'create_server' }));
    const outcome = await ensure(world);
    expect(outcome).toMatchObject({ ok: false, refusal: { code: 'server_not_running_in_time' } });
    expect(!outcome.ok && outcome.refusal.message).toMatch(
      /server app-fsn1-7k2m \(\d+\) is still busy with create_server/,
    );
    const waited = world.clock.slept.reduce((sum, ms) => sum + ms, 0);
    expect(waited).toBeGreaterThanOrEqual(60_000);
    expect(waited).toBeLessThan(62_000);
  });
});

describe('awaitRunning', () => {
  test('create_server fine but start_server failed: powered on once, runs', async () => {
    await using world = await stubWorld();
    world.stub.setFaults(onCreate({ kind: 'action_error', command: 'start_server' }));
    expect(await ready(world)).toMatchObject({ status: 'running' });
    expect(world.writes().filter((write) => write.includes('poweron'))).toHaveLength(1);
  });

  test('power-on fails as well: refused, names server and action', async () => {
    await using world = await stubWorld();
    world.stub.setFaults([
      ...onCreate({ kind: 'action_error', command: 'start_server' }),
      { match: { path: '/v1/servers/*/actions/poweron' }, fault: { kind: 'action_error', code: 'no_power' } },
    ]);
    const ensured = await ensure(world);
    if (!ensured.ok) expect.unreachable();
    const outcome = await awaitRunning(world.api, ensured.value.server, world.waiting);
    expect(outcome).toMatchObject({ ok: false, refusal: { code: 'server_start_failed' } });
    expect(!outcome.ok && outcome.refusal.message).toMatch(
      /server app-fsn1-7k2m \(\d+\) does not start: start_server \(action \d+: no_power/,
    );
  });

  test('never runs: bounded, names the server and its last status', async () => {
    await using world = await stubWorld();
    const { server } = await world.api.createServer(world.request);
    const stuck = { ...world.api, getServer: async () => ({ ...server, status: 'initializing' }) };
    expect(await awaitRunning(stuck, server, world.waiting)).toEqual({
      ok: false,
      refusal: {
        code: 'server_not_running_in_time',
        message: `server ${NAME} (${server.id}) is initializing, not running, after 60 s; use --resume`,
      },
    });
  });

  test('gone meanwhile: refused', async () => {
    await using world = await stubWorld();
    const server = await ready(world);
    await deleteServer(world.api, { nodeId: NODE_ID, serverId: server.id }, world.waiting);
    expect(await awaitRunning(world.api, server, world.waiting)).toMatchObject({
      ok: false,
      refusal: { code: 'server_vanished' },
    });
  });
});

describe('deleteServer', () => {
  const remove = (world: World, serverId: number | null) =>
    deleteServer(world.api, { nodeId: NODE_ID, serverId }, world.waiting);

  test('by id, by label, and again: gone each time', async () => {
    await using world = await stubWorld();
    const server = await ready(world);
    expect(await remove(world, server.id)).toEqual({ ok: true, value: 'gone' });
    expect(await remove(world, server.id)).toEqual({ ok: true, value: 'gone' });
    await ready(world);
    expect(await remove(world, null)).toEqual({ ok: true, value: 'gone' });
    expect(await remove(world, null)).toEqual({ ok: true, value: 'gone' });
    expect(world.stub.state().servers).toEqual([]);
  });

  test('being deleted already: progress, no second delete', async () => {
    await using world = await stubWorld();
    const server = await ready(world);
    world.stub.setFaults([{ match: { method: 'DELETE', path: '/v1/servers/*' }, fault: { kind: 'never_finishes' } }]);
    await world.api.deleteServer(server.id);
    expect(await remove(world, server.id)).toEqual({ ok: true, value: 'deleting' });
    expect(await ensure(world)).toMatchObject({ ok: false, refusal: { code: 'server_being_deleted' } });
    expect(world.writes().filter((write) => write.startsWith('DELETE'))).toHaveLength(1);
  });

  test('the answer is lost: repeated', async () => {
    await using world = await stubWorld();
    const server = await ready(world);
    world.stub.setFaults([
      { match: { method: 'DELETE', path: '/v1/servers/*' }, nth: 1, fault: { kind: 'lose_response' } },
    ]);
    expect(await remove(world, server.id)).toEqual({ ok: true, value: 'gone' });
    expect(world.stub.state().servers).toEqual([]);
  });

  test('protected: refused, names the server', async () => {
    await using world = await stubWorld();
    const server = await ready(world);
    world.stub.setFaults([
      { match: { method: 'DELETE', path: '/v1/servers/*' }, fault: { kind: 'status', status: 423, code: 'protected' } },
    ]);
    expect(await remove(world, server.id)).toMatchObject({
      ok: false,
      refusal: { code: 'server_protected', message: expect.stringContaining(NAME) },
    });
  });

  test('another label: refused, left alone', async () => {
    await using world = await stubWorld();
    const { server } = await plant(world, 'stranger', { owner: 'anna' });
    expect(await remove(world, server.id)).toMatchObject({ ok: false, refusal: { code: 'server_not_ours' } });
    expect(world.stub.state().servers).toHaveLength(1);
  });
});

/** The first call answers `first`, as a list that is not up to date yet; later ones are real. */
function once<A extends unknown[], R>(first: R, then: (...args: A) => Promise<R>) {
  let called = false;
  return async (...args: A): Promise<R> => {
    if (called) return await then(...args);
    called = true;
    return first;
  };
}
