import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { DockerRuntime } from '../../../../agent/runtime/docker/docker-runtime.ts';
import { DockerEngine } from '../../../../agent/runtime/docker/engine.ts';
import { systemTime } from '../../../../agent/time.ts';
import { type DockerStub, startDockerStub } from '../../../../stubs/docker/stub.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { instanceId, NODE_ID, workload } from '../support/workloads.ts';

const NEVER = new AbortController().signal;
const WEB = workload(['/bin/web']);
const NAME = `pushleft-${WEB.id}`;

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let stub: DockerStub;
let runtime: DockerRuntime;

beforeEach(async () => {
  folder = await temporaryDirectory();
  stub = await startDockerStub(`${folder.path}/docker.sock`);
  stub.containers.images.add(WEB.image);
  runtime = newRuntime();
});
afterEach(async () => {
  await stub[Symbol.asyncDispose]();
  await folder[Symbol.asyncDispose]();
});

/** A runtime as an agent that starts anew has it. */
function newRuntime(): DockerRuntime {
  const engine = new DockerEngine(`${folder.path}/docker.sock`);
  const address = async () => '127.0.0.1';
  return new DockerRuntime({ engine, stateDir: folder.path, nodeId: NODE_ID, address, time: systemTime });
}

const ensure = (spec = WEB, signal = NEVER) => runtime.ensure(spec, signal);
const remove = (spec = WEB, graceMs = 5_000) => runtime.remove(spec, graceMs, NEVER);
const statuses = () => stub.containers.all.map(({ name, status }) => [name, status]);
/** Names of calls, ids shortened, without those that only look. */
const acts = () =>
  stub.calls.map(({ name }) => name.replace(/[0-9a-f]{64}/, '<id>')).filter((name) => !name.startsWith('GET '));

describe('ensure', () => {
  test('nothing there: created under its name with its labels and its port in PORT, and started', async () => {
    const { port, found } = await ensure();
    expect([found, statuses()]).toEqual([false, [[NAME, 'running']]]);
    expect(stub.containers.all[0]?.config).toMatchObject({
      Image: 'example/web:1',
      Cmd: ['/bin/web'],
      Env: [`INSTANCE_ID=${WEB.id}`, `PORT=${port}`],
      Labels: { 'pushleft.instance_id': WEB.id, 'pushleft.generation': '1', 'pushleft.node_id': NODE_ID },
    });
  });

  test('runs, asked by the next agent: found with its port, nothing is done', async () => {
    const { port } = await ensure();
    const before = acts().length;
    expect(await newRuntime().ensure(WEB, NEVER)).toEqual({ port, found: true });
    expect(acts()).toHaveLength(before);
  });

  test('created by an agent that died before it started it: replaced by one that runs', async () => {
    stub.containers.create(NAME, { Image: WEB.image, Labels: labels({}) });
    const [former] = stub.containers.all;
    expect(await ensure()).toMatchObject({ found: false });
    expect(statuses()).toEqual([[NAME, 'running']]);
    expect(stub.containers.all[0]?.id).not.toBe(former?.id);
  });

  test('a service that has exited: replaced; what runs once and has exited: found', async () => {
    await ensure();
    stub.containers.exit(NAME, 1);
    expect(await ensure()).toMatchObject({ found: false });
    const once = workload(['/bin/migrate'], { id: instanceId(1, 1), run: 'once', listens: false });
    await ensure(once);
    stub.containers.exit(`pushleft-${once.id}`, 0);
    expect(await ensure(once)).toEqual({ port: null, found: true });
    expect(await runtime.look(once.id, NEVER)).toEqual({ kind: 'exited', code: 0 });
  });

  test('memory and CPU below what Docker takes: the least that it takes', async () => {
    await ensure({ ...WEB, memoryMb: 1, cpuMillis: 1 });
    expect(stub.containers.all[0]?.config).toMatchObject({
      HostConfig: { Memory: 6 * 1_024 ** 2, NanoCpus: 10_000_000 },
    });
  });
});

describe('images', () => {
  test('absent: pulled, then run; there: not pulled', async () => {
    stub.registry.add('example/new:2');
    await ensure({ ...WEB, image: 'example/new:2' });
    await ensure({ ...WEB, image: 'example/new:2', id: instanceId(1, 1) });
    expect(acts().filter((name) => name === 'POST /images/create')).toHaveLength(1);
  });

  test.each([
    ['example/new', 'example/new:latest'],
    ['registry.example:5000/new', 'registry.example:5000/new:latest'],
    [`example/new@sha256:${'a'.repeat(64)}`, `example/new@sha256:${'a'.repeat(64)}`],
  ])('%s: asked for as %s', async (image, asked) => {
    stub.failNext(/^POST .images.create$/, { status: 200, body: [{ status: 'Downloaded' }] });
    stub.failNext(/^POST .containers.create$/, { status: 404, body: { message: 'No such image' } });
    await expect(ensure({ ...WEB, image })).rejects.toThrow('No such image');
    const pull = stub.calls.find(({ name }) => name === 'POST /images/create');
    expect(pull?.url.searchParams.get('fromImage')).toBe(asked);
  });

  test.each([
    ['the registry does not know it', undefined, 'manifest unknown'],
    ['the engine refuses', { status: 500, body: { message: 'no space left on device' } }, 'no space left on device'],
  ] as const)('%s: work_failed that says so, nothing is created', async (_, fault, reason) => {
    if (fault !== undefined) stub.failNext(/^POST .images.create$/, fault);
    await expect(ensure({ ...WEB, image: 'example/absent:1' })).rejects.toMatchObject({
      code: 'work_failed',
      message: expect.stringMatching(new RegExp(`^image example/absent:1 was not pulled: .*${reason}`)),
    });
    expect(statuses()).toEqual([]);
  });

  test('a pull that hangs, the lease is lost: ends at once', async () => {
    stub.failNext(/^POST .images.create$/, 'hold');
    const stop = new AbortController();
    const ensuring = ensure({ ...WEB, image: 'example/absent:1' }, stop.signal);
    await waitFor(() => acts().includes('POST /images/create'), { what: 'the pull' });
    stop.abort(new Error('lease lost'));
    await expect(ensuring).rejects.toThrow('lease lost');
  });
});

describe('what comes to nothing in the middle', () => {
  test.each([
    ['the engine cannot start it', { status: 500, body: { message: 'OCI runtime: no such file' } }, 'OCI runtime'],
    ['the connection ends while it starts', 'drop', 'did not answer'],
  ] as const)('%s: said, and what was created is removed', async (_, fault, reason) => {
    stub.failNext(/start$/, fault);
    await expect(ensure()).rejects.toThrow(reason);
    expect([acts()[1], statuses()]).toEqual(['POST /containers/<id>/start', []]);
  });

  test('the answer to the creation is lost: what was created is removed', async () => {
    stub.failNext(/^POST .containers.create$/, 'drop', { after: true });
    await expect(ensure()).rejects.toThrow('did not answer');
    expect(statuses()).toEqual([]);
  });

  test('the lease is lost while it is created: what was created is removed', async () => {
    stub.failNext(/^POST .containers.create$/, 'hold', { after: true });
    const stop = new AbortController();
    const ensuring = ensure(WEB, stop.signal);
    await waitFor(() => stub.containers.all.length === 1, { what: 'it is created' });
    stop.abort(new Error('lease lost'));
    await expect(ensuring).rejects.toThrow('lease lost');
    expect(statuses()).toEqual([]);
  });

  test('a stranger takes the name between the look and the creation: not_owned, untouched', async () => {
    stub.failNext(/^GET .containers.pushleft-/, { status: 404, body: { message: 'No such container' } });
    stub.containers.create(NAME, { Image: WEB.image });
    await expect(ensure()).rejects.toMatchObject({ code: 'not_owned' });
    expect(statuses()).toEqual([[NAME, 'created']]);
  });
});

describe('remove', () => {
  test('runs: stopped with its grace period, then removed; again: false', async () => {
    await ensure();
    expect([await remove(WEB, 7_500), await remove()]).toEqual([true, false]);
    expect(acts().slice(-2)).toEqual(['POST /containers/<id>/stop', 'DELETE /containers/<id>']);
    const stop = stub.calls.find(({ name }) => name.endsWith('/stop'));
    expect(stop?.url.searchParams.get('t')).toBe('8');
  });

  test('has stopped already (304): removed', async () => {
    await ensure();
    stub.containers.exit(NAME, 0);
    expect(await remove()).toBe(true);
    expect(statuses()).toEqual([]);
  });

  test.each([/stop$/, /^DELETE/])('goes before it is met by %s (404): done', async (call) => {
    await ensure();
    stub.failNext(call, { status: 404, body: { message: 'No such container' } });
    expect(await remove()).toBe(true);
  });

  test('its removal is under way (409): waits until it is gone', async () => {
    await ensure();
    stub.containers.beginRemoval(NAME, 250);
    expect(await remove()).toBe(true);
    expect(statuses()).toEqual([]);
  });

  test('the engine cannot: an error that says why, and it is still there', async () => {
    await ensure();
    stub.failNext(/^DELETE/, { status: 500, body: { message: 'device or resource busy' } });
    await expect(remove()).rejects.toThrow('did not remove the container: device or resource busy');
    expect(statuses()).toEqual([[NAME, 'exited']]);
  });

  test('a stop that takes long, the signal is aborted: stops waiting', async () => {
    await ensure();
    stub.failNext(/stop$/, 'hold');
    const stop = new AbortController();
    const removing = runtime.remove(WEB, 600_000, stop.signal);
    await waitFor(() => acts().some((name) => name.endsWith('/stop')), { what: 'the stop' });
    stop.abort(new Error('told to end'));
    await expect(removing).rejects.toThrow('told to end');
  });
});

describe('what is not ours', () => {
  test.each([
    ['no label', {}],
    ['half of the labels', { 'pushleft.instance_id': WEB.id, 'pushleft.node_id': NODE_ID }],
    ['a generation that is no number', labels({ 'pushleft.generation': 'one' })],
    ["another instance's labels", labels({ 'pushleft.instance_id': instanceId(7) })],
    ["another node's labels", labels({ 'pushleft.node_id': '10000000-0000-4000-8000-00000000000b' })],
    ['another generation', labels({ 'pushleft.generation': '2' })],
  ])('a container of our name with %s: not_owned for ensure and remove; nothing is done to it', async (_, carried) => {
    stub.containers.create(NAME, { Image: WEB.image, Labels: carried });
    stub.containers.start(NAME);
    await expect(ensure()).rejects.toMatchObject({ code: 'not_owned' });
    await expect(remove()).rejects.toMatchObject({ code: 'not_owned' });
    expect([acts(), statuses()]).toEqual([[], [[NAME, 'running']]]);
  });

  test('a later generation of the slot: superseded; one of another node: no matter', async () => {
    const later = { 'pushleft.instance_id': instanceId(2), 'pushleft.generation': '2' };
    const ofAnother = { ...later, 'pushleft.node_id': '10000000-0000-4000-8000-00000000000b' };
    stub.containers.create('another', { Image: WEB.image, Labels: labels(ofAnother) });
    expect(await ensure()).toMatchObject({ found: false });
    stub.containers.create('later', { Image: WEB.image, Labels: labels(later) });
    await expect(ensure()).rejects.toMatchObject({ code: 'superseded' });
  });
});

describe('the engine', () => {
  test.each([
    ['1.41', '1.12', '/v1.41/'],
    ['1.47', '1.24', '/v1.41/'],
    ['1.52', '1.44', '/v1.44/'],
  ])('that knows %s down to %s: asked in %s', async (newest, oldest, prefix) => {
    stub.versions = { ApiVersion: newest, MinAPIVersion: oldest };
    await ensure();
    expect(stub.calls.at(-1)?.url.pathname).toContain(prefix);
  });

  test('that is too old: said', async () => {
    stub.versions = { ApiVersion: '1.40' };
    await expect(ensure()).rejects.toThrow('the Docker engine knows API 1.40, not 1.41');
  });

  test('away: an error that names the socket; back: asked for its version again', async () => {
    await stub[Symbol.asyncDispose]();
    await expect(ensure()).rejects.toThrow(`the Docker engine on ${folder.path}/docker.sock did not answer`);
    stub = await startDockerStub(`${folder.path}/docker.sock`);
    stub.containers.images.add(WEB.image);
    expect(await ensure()).toMatchObject({ found: false });
  });

  test('that answers what no engine does: an error, nothing is done', async () => {
    stub.failNext(/^GET .containers.pushleft-/, { status: 200, body: { Id: 7 } });
    await expect(ensure()).rejects.toThrow();
    expect(acts()).toEqual([]);
  });
});

function labels(differing: Readonly<Record<string, string>>): Record<string, string> {
  return {
    'pushleft.instance_id': WEB.id,
    'pushleft.deployment_id': WEB.deploymentId ?? '',
    'pushleft.generation': '1',
    'pushleft.epoch': '1',
    'pushleft.node_id': NODE_ID,
    ...differing,
  };
}
