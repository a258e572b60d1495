import { createServer } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureApplication } from '../../../agent/jobs/ensure-application.ts';
import { ensureDatabase } from '../../../agent/jobs/ensure-database.ts';
import { teardownApplication } from '../../../agent/jobs/teardown-application.ts';
import { ProcessRuntime } from '../../../agent/runtime/process/process-runtime.ts';
import { systemTime } from '../../../agent/time.ts';
import type { JobPayload } from '../../../src/protocol/job-kinds/registry.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';
import { eventually, instanceId, NODE_ID, node, SERVER } from '../runtime/support/workloads.ts';

const NEVER = new AbortController().signal;
const LEASE = { id: '20000000-0000-4000-8000-000000000001', token: 'token-0123456789abcdef' };

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let runtime: ProcessRuntime;

beforeEach(async () => {
  folder = await temporaryDirectory();
  runtime = new ProcessRuntime({ stateDir: folder.path, nodeId: NODE_ID, address, time: systemTime });
});
afterEach(async () => {
  for (const { instance_id: id, generation } of await runtime.list())
    await runtime.remove({ id, generation }, 0, NEVER);
  await folder[Symbol.asyncDispose]();
});

const address = async () => '127.0.0.1';
const deps = () => ({ runtime, address, time: systemTime });

function payload(
  command: readonly string[],
  more: Partial<JobPayload<'ensure_application'>> = {},
): JobPayload<'ensure_application'> {
  return {
    instance_id: instanceId(),
    deployment_id: '50000000-0000-4000-8000-00000000000d',
    generation: 1,
    epoch: 1,
    run: 'service',
    image: 'example/web:1',
    command: [...command],
    cpu_millis: 100,
    memory_mb: 64,
    listens: true,
    readiness_path: null,
    timeout_seconds: 20,
    ...more,
  };
}

const ensure = (given: JobPayload<'ensure_application'>, signal = NEVER) =>
  ensureApplication(deps())(given, signal, LEASE);
const fileAt = (path: string) => `${folder.path}/instances/${instanceId()}/${path}`;

describe('ensure_application, a service', () => {
  test('listens: ready with the endpoint that answers; again: the same', async () => {
    const result = await ensure(payload(node(SERVER)));
    if (result.state !== 'ready' || result.endpoint === null) throw new Error(JSON.stringify(result));
    expect((await fetch(`http://127.0.0.1:${result.endpoint.port}/`)).status).toBe(200);
    expect(await ensure(payload(node(SERVER)))).toEqual(result);
  });

  test('answers 2xx at its path: ready', async () => {
    expect(await ensure(payload(node(SERVER), { readiness_path: '/ready' }))).toMatchObject({ state: 'ready' });
  });

  test('answers 500 at its path: not_ready after the timeout, and removed', async () => {
    const broken = payload(node(SERVER), { readiness_path: '/broken', timeout_seconds: 1 });
    await expect(ensure(broken)).rejects.toMatchObject({
      code: 'not_ready',
      message: 'it was not ready within 1 s',
    });
    expect(await runtime.list()).toEqual([]);
  });

  test('ends before it listens: not_ready with its exit code, and removed', async () => {
    await expect(ensure(payload(['/bin/sh', '-c', 'exit 9']))).rejects.toMatchObject({
      code: 'not_ready',
      message: 'it ended before it was ready with exit code 9',
    });
    expect(await runtime.list()).toEqual([]);
  });

  test('its program is not there: said', async () => {
    await expect(ensure(payload(['/nowhere/program']))).rejects.toThrow('127: is /nowhere/program there');
  });

  test('it has ended and somebody else answers on its port: not_ready', async () => {
    const stranger = createServer((_, response) => response.end());
    // The address is asked for when the port is chosen and again before it is first looked at: the port is taken in between.
    let asked = 0;
    const takingPort = async () => {
      asked += 1;
      if (asked === 2) {
        await eventually(fileAt('exit'));
        const { port } = JSON.parse(await eventually(fileAt('record.json'))) as { port: number };
        await new Promise<void>((resolve) => stranger.listen(port, '127.0.0.1', resolve));
      }
      return '127.0.0.1';
    };
    const taking = new ProcessRuntime({
      stateDir: folder.path,
      nodeId: NODE_ID,
      address: takingPort,
      time: systemTime,
    });
    const handler = ensureApplication({ runtime: taking, address: takingPort, time: systemTime });
    try {
      const exits = payload(['/bin/sh', '-c', 'exit 3']);
      await expect(handler(exits, NEVER, LEASE)).rejects.toMatchObject({ code: 'not_ready' });
      expect(stranger.listening).toBe(true);
    } finally {
      stranger.close();
    }
  });

  test('does not listen: ready without an endpoint when it is still there after a second', async () => {
    const startedMs = performance.now();
    const result = await ensure(payload(['/bin/sleep', '600'], { listens: false }));
    expect(result).toEqual({ state: 'ready', endpoint: null });
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1_000);
  });

  test('the lease is lost meanwhile: what it started is removed', async () => {
    const stop = new AbortController();
    const working = ensure(payload(['/bin/sh', '-c', 'echo $$ >pid; exec sleep 600']), stop.signal);
    await eventually(fileAt('home/pid'));
    stop.abort(new Error('lease lost'));
    await expect(working).rejects.toThrow('lease lost');
    expect(await runtime.list()).toEqual([]);
  });

  test('the lease is lost while it waits for what had been there before: that stays', async () => {
    const sleeper = payload(['/bin/sleep', '600'], { listens: false });
    await ensure(sleeper);
    const stop = new AbortController();
    const working = ensure(sleeper, stop.signal);
    stop.abort(new Error('lease lost'));
    await expect(working).rejects.toThrow('lease lost');
    expect(await runtime.look(instanceId())).toEqual({ kind: 'running' });
  });
});

describe('ensure_application, once', () => {
  const once = (script: string, seconds = 20) =>
    payload(['/bin/sh', '-c', script], { run: 'once', listens: false, timeout_seconds: seconds });

  test('exit 0: done; again: done, not run again', async () => {
    const counting = once('echo ran >>ran');
    expect(await ensure(counting)).toEqual({ state: 'done' });
    expect(await ensure(counting)).toEqual({ state: 'done' });
    expect(await eventually(fileAt('home/ran'))).toBe('ran\n');
  });

  test('exit 4: work_failed with the code, removed, and run again by the next attempt', async () => {
    const failing = once(`test -e ${folder.path}/tried || { touch ${folder.path}/tried; exit 4; }`);
    await expect(ensure(failing)).rejects.toMatchObject({ code: 'work_failed', message: 'it ended with exit code 4' });
    expect(await runtime.list()).toEqual([]);
    expect(await ensure(failing)).toEqual({ state: 'done' });
  });

  test('not done in time: not_ready, and removed', async () => {
    await expect(ensure(once('sleep 600', 1))).rejects.toMatchObject({ code: 'not_ready' });
    expect(await runtime.list()).toEqual([]);
  });
});

describe('teardown_application', () => {
  test('an instance that is there: removed; again: nothing was there', async () => {
    await ensure(payload(node(SERVER)));
    const teardown = () =>
      teardownApplication(runtime)({ instance_id: instanceId(), generation: 1, grace_seconds: 5 }, NEVER, LEASE);
    expect([await teardown(), await teardown()]).toEqual([{ removed: true }, { removed: false }]);
  });
});

describe('ensure_database', () => {
  const DATABASE_ID = '70000000-0000-4000-8000-00000000000b';
  const database = (script: string) => ({
    database_id: DATABASE_ID,
    epoch: 1,
    image: 'example/database:1',
    command: node(script),
    cpu_millis: 100,
    memory_mb: 64,
    timeout_seconds: 20,
  });

  test('listens: its endpoint, and its data in DATA_DIR; again: the same', async () => {
    const serving = database(`require('node:fs').appendFileSync(process.env.DATA_DIR + '/rows', 'row'); ${SERVER}`);
    const result = await ensureDatabase(deps())(serving, NEVER, LEASE);
    expect((await fetch(`http://127.0.0.1:${result.endpoint.port}/`)).status).toBe(200);
    expect(await ensureDatabase(deps())(serving, NEVER, LEASE)).toEqual(result);
    expect(await eventually(`${folder.path}/data/databases/${DATABASE_ID}/rows`)).toBe('row');
  });

  test('ends at once: not_ready; its data stays', async () => {
    const failing = database(
      `require('node:fs').writeFileSync(process.env.DATA_DIR + '/rows', 'row'); process.exit(2)`,
    );
    await expect(ensureDatabase(deps())(failing, NEVER, LEASE)).rejects.toMatchObject({ code: 'not_ready' });
    expect(await runtime.list()).toEqual([]);
    expect(await eventually(`${folder.path}/data/databases/${DATABASE_ID}/rows`)).toBe('row');
  });
});
