import { mkdir, readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ensureApplication } from '../../agent/jobs/ensure-application.ts';
import { ensureDatabase } from '../../agent/jobs/ensure-database.ts';
import { teardownApplication } from '../../agent/jobs/teardown-application.ts';
import { DockerRuntime } from '../../agent/runtime/docker/docker-runtime.ts';
import { DockerEngine } from '../../agent/runtime/docker/engine.ts';
import { systemTime } from '../../agent/time.ts';
import type { JobPayload } from '../../src/protocol/job-kinds/registry.ts';
import { instanceId, NODE_ID } from '../agent/runtime/support/workloads.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';
import { waitFor } from '../support/wait-for.ts';
import { BUSYBOX_IMAGE, type Dockerd, startDockerd } from './support/dockerd.ts';

const NEVER = new AbortController().signal;
const LEASE = { id: '20000000-0000-4000-8000-000000000001', token: 'token-0123456789abcdef' };
const ID = instanceId();
const NAME = `pushleft-${ID}`;
/** Serves "here" on PORT. As process 1 it hears no signal that it does not catch, so the shell stays to catch one. */
const WEB = shell(
  'echo here >/tmp/index.html; httpd -p 127.0.0.1:$PORT -h /tmp; trap "exit 0" TERM; while :; do sleep 0.1; done',
);
const SLEEPS = shell('trap "exit 0" TERM; while :; do sleep 0.1; done');

let dockerd: Dockerd;
let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let runtime: DockerRuntime;

beforeAll(async () => {
  dockerd = await startDockerd();
});
afterAll(() => dockerd[Symbol.asyncDispose]());

beforeEach(async () => {
  folder = await temporaryDirectory();
  runtime = newRuntime();
});
afterEach(async () => {
  const ids = (await dockerd.docker('ps', '--all', '--quiet')).split('\n').filter(Boolean);
  if (ids.length > 0) await dockerd.docker('rm', '--force', ...ids);
  await folder[Symbol.asyncDispose]();
});

const address = async () => '127.0.0.1';

/** A runtime as an agent that starts anew has it. */
function newRuntime(nodeId = NODE_ID): DockerRuntime {
  const engine = new DockerEngine(dockerd.socketPath);
  return new DockerRuntime({ engine, stateDir: folder.path, nodeId, address, time: systemTime });
}

function shell(script: string): string[] {
  return ['/bin/sh', '-c', script];
}

function payload(
  command: readonly string[],
  more: Partial<JobPayload<'ensure_application'>> = {},
): JobPayload<'ensure_application'> {
  return {
    instance_id: ID,
    deployment_id: '50000000-0000-4000-8000-00000000000d',
    generation: 1,
    epoch: 1,
    run: 'service',
    image: BUSYBOX_IMAGE,
    command: [...command],
    cpu_millis: 100,
    memory_mb: 32,
    listens: true,
    readiness_path: null,
    timeout_seconds: 30,
    ...more,
  };
}

const ensure = (given: JobPayload<'ensure_application'>, signal = NEVER, by = runtime) =>
  ensureApplication({ runtime: by, address, time: systemTime })(given, signal, LEASE);
const teardown = (generation = 1) =>
  teardownApplication(runtime)({ instance_id: ID, generation, grace_seconds: 5 }, NEVER, LEASE);
const inspect = async (format: string) => (await dockerd.docker('inspect', '--format', format, NAME)).trim();
const names = async () => (await dockerd.docker('ps', '--all', '--format', '{{.Names}}')).split('\n').filter(Boolean);

async function ensureWeb(by = runtime): Promise<number> {
  const result = await ensure(payload(WEB, { readiness_path: '/index.html' }), NEVER, by);
  if (result.state !== 'ready' || result.endpoint === null) throw new Error(JSON.stringify(result));
  return result.endpoint.port;
}
const get = (port: number) => fetch(`http://127.0.0.1:${port}/index.html`).then((answer) => answer.text());

describe('a service', () => {
  test('ready: serves on the port that it was given; found by the next agent, the same container; torn down, twice', async () => {
    const port = await ensureWeb();
    expect(await get(port)).toBe('here\n');
    const id = await inspect('{{.Id}}');
    expect([await ensureWeb(newRuntime()), await inspect('{{.Id}}')]).toEqual([port, id]);
    expect([await teardown(), await names(), await teardown()]).toEqual([{ removed: true }, [], { removed: false }]);
  });

  test('what it may: its memory and no swap, its share of CPUs, no capability, none to gain', async () => {
    await ensure(payload(SLEEPS, { listens: false }));
    const { HostConfig } = JSON.parse(await inspect('{{json .}}')) as { HostConfig: Record<string, unknown> };
    expect(HostConfig).toMatchObject({
      NetworkMode: 'host',
      Memory: 32 * 1_024 ** 2,
      MemorySwap: 32 * 1_024 ** 2,
      NanoCpus: 100_000_000,
      PidsLimit: 1_024,
      RestartPolicy: { Name: 'unless-stopped' },
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges:true'],
      LogConfig: { Type: 'json-file', Config: { 'max-size': '5m', 'max-file': '2' } },
    });
    const pid = await inspect('{{.State.Pid}}');
    expect(await readFile(`/proc/${pid}/status`, 'utf8')).toMatch(/^CapEff:\t0+\nCapBnd:\t0+$/m);
  });

  test('its labels: whose it is', async () => {
    await ensure(payload(SLEEPS, { listens: false }));
    expect(JSON.parse(await inspect('{{json .Config.Labels}}'))).toEqual({
      'pushleft.instance_id': ID,
      'pushleft.deployment_id': '50000000-0000-4000-8000-00000000000d',
      'pushleft.generation': '1',
      'pushleft.epoch': '1',
      'pushleft.node_id': NODE_ID,
      'pushleft.spec_sha256': expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    expect(await runtime.list()).toMatchObject([{ instance_id: ID, generation: 1 }]);
  });

  test('killed: the engine starts it again', async () => {
    const port = await ensureWeb();
    process.kill(Number(await inspect('{{.State.Pid}}')), 'SIGKILL');
    await waitFor(async () => (await inspect('{{.RestartCount}}')) === '1' && (await get(port)) === 'here\n', {
      what: 'it serves again',
    });
  });

  test('ends before it is ready: not_ready with its exit code, and removed', async () => {
    await expect(ensure(payload(shell('exit 9')))).rejects.toMatchObject({
      code: 'not_ready',
      message: 'it ended before it was ready with exit code 9',
    });
    expect(await names()).toEqual([]);
  });

  test('a program that the image does not have: not_ready, said, and removed', async () => {
    await expect(ensure(payload(['/nowhere/program']))).rejects.toThrow(/could not be started: .*\/nowhere\/program/);
    expect(await names()).toEqual([]);
  });

  test('the lease is lost meanwhile: what it started is removed', async () => {
    const stop = new AbortController();
    const working = ensure(payload(SLEEPS), stop.signal);
    await waitFor(async () => (await inspect('{{.State.Running}}').catch(() => '')) === 'true', { what: 'it runs' });
    stop.abort(new Error('lease lost'));
    await expect(working).rejects.toThrow('lease lost');
    expect(await names()).toEqual([]);
  });

  test('another command under the same id: the former container makes way', async () => {
    await ensure(payload(SLEEPS, { listens: false }));
    const former = await inspect('{{.Id}}');
    await ensureWeb();
    expect(await inspect('{{.Id}}')).not.toBe(former);
    expect(await names()).toEqual([NAME]);
  });

  test('created by an agent that died before it started it: the next agent serves', async () => {
    await ensureWeb();
    const { Config } = JSON.parse(await inspect('{{json .}}')) as { Config: { Labels: Record<string, string> } };
    await dockerd.docker('rm', '--force', NAME);
    const labels = Object.entries(Config.Labels).flatMap(([name, value]) => ['--label', `${name}=${value}`]);
    await dockerd.docker('create', '--name', NAME, ...labels, BUSYBOX_IMAGE, '/bin/sh');
    expect(await get(await ensureWeb())).toBe('here\n');
  });

  test('the engine goes and comes back: found, on its port', async () => {
    const port = await ensureWeb();
    await dockerd.stop();
    await expect(ensureWeb()).rejects.toThrow('did not answer');
    await dockerd.start();
    expect(await ensureWeb()).toBe(port);
  });
});

describe('once', () => {
  test('exit 0: done; again: done, not run again', async () => {
    const once = payload(shell('echo ran'), { run: 'once', listens: false });
    expect(await ensure(once)).toEqual({ state: 'done' });
    expect(await ensure(once)).toEqual({ state: 'done' });
    expect(await dockerd.docker('logs', NAME)).toBe('ran\n');
  });

  test('exit 4: work_failed with the code, and removed', async () => {
    const failing = payload(shell('exit 4'), { run: 'once', listens: false });
    await expect(ensure(failing)).rejects.toMatchObject({ code: 'work_failed', message: 'it ended with exit code 4' });
    expect(await names()).toEqual([]);
  });
});

describe('a database', () => {
  test('writes to DATA_DIR: its data outlives it, on the host', async () => {
    await mkdir(`${folder.path}/data`);
    const id = '70000000-0000-4000-8000-00000000000b';
    const handler = ensureDatabase({ runtime, address, time: systemTime });
    const command = shell('echo kept >$DATA_DIR/rows; exec httpd -f -p 127.0.0.1:$PORT');
    const given = { database_id: id, epoch: 1, image: BUSYBOX_IMAGE, cpu_millis: 100, memory_mb: 32 };
    const { endpoint } = await handler({ ...given, command, timeout_seconds: 30 }, NEVER, LEASE);
    expect(endpoint.address).toBe('127.0.0.1');
    await runtime.remove({ id, generation: 1 }, 0, NEVER);
    expect(await readFile(`${folder.path}/data/databases/${id}/rows`, 'utf8')).toBe('kept\n');
  });
});

describe('what is not ours', () => {
  test('a container of our name without our labels: not_owned, it goes on', async () => {
    await dockerd.docker('run', '--detach', '--network', 'host', '--name', NAME, BUSYBOX_IMAGE, ...SLEEPS);
    await expect(ensure(payload(WEB))).rejects.toMatchObject({ code: 'not_owned' });
    await expect(teardown()).rejects.toMatchObject({ code: 'not_owned' });
    expect(await inspect('{{.State.Running}}')).toBe('true');
  });

  test('of another node of the same engine, or of another generation than asked: not_owned, it goes on', async () => {
    await ensure(payload(SLEEPS, { listens: false }));
    const other = newRuntime('10000000-0000-4000-8000-00000000000b');
    expect(await other.list()).toEqual([]);
    await expect(other.remove({ id: ID, generation: 1 }, 0, NEVER)).rejects.toMatchObject({ code: 'not_owned' });
    await expect(teardown(2)).rejects.toMatchObject({ code: 'not_owned' });
    expect(await inspect('{{.State.Running}}')).toBe('true');
  });

  test('a later generation of the slot: superseded', async () => {
    await ensure(payload(SLEEPS, { instance_id: instanceId(2), generation: 2, listens: false }));
    await expect(ensure(payload(WEB))).rejects.toMatchObject({ code: 'superseded' });
    expect(await names()).toEqual([`pushleft-${instanceId(2)}`]);
  });
});

test('an image that cannot be had: work_failed in bounded time, nothing is left', async () => {
  const absent = payload(WEB, { image: '127.0.0.1:1/absent:1' });
  await expect(ensure(absent)).rejects.toMatchObject({
    code: 'work_failed',
    message: expect.stringContaining('image 127.0.0.1:1/absent:1 was not pulled'),
  });
  expect(await names()).toEqual([]);
});
