import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { identifyProcess } from '../../../../agent/runtime/process/process-identity.ts';
import { ProcessRuntime } from '../../../../agent/runtime/process/process-runtime.ts';
import type { WorkloadSpec } from '../../../../agent/runtime/runtime.ts';
import { systemTime } from '../../../../agent/time.ts';
import { temporaryDirectory } from '../../../support/temporary-directory.ts';
import { waitFor } from '../../../support/wait-for.ts';
import { eventually, instanceId, isAlive, NODE_ID, node, SERVER, workload } from '../support/workloads.ts';

const NEVER = new AbortController().signal;

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let runtime: ProcessRuntime;
let strangers: ChildProcess[];

beforeEach(async () => {
  folder = await temporaryDirectory();
  runtime = newRuntime();
  strangers = [];
});
afterEach(async () => {
  for (const stranger of strangers) stranger.kill('SIGKILL');
  const labels = await newRuntime().list();
  for (const { instance_id: id, generation } of labels) await newRuntime().remove({ id, generation }, 0, NEVER);
  await folder[Symbol.asyncDispose]();
});

/** A runtime as an agent that starts anew has it. */
function newRuntime(nodeId = NODE_ID): ProcessRuntime {
  return new ProcessRuntime({ stateDir: folder.path, nodeId, address: async () => '127.0.0.1', time: systemTime });
}

const ensure = (spec: WorkloadSpec) => runtime.ensure(spec, NEVER);
const remove = (spec: WorkloadSpec, graceMs = 5_000) => runtime.remove(spec, graceMs, NEVER);
const folderOf = (spec: WorkloadSpec) => `${folder.path}/instances/${spec.id}`;

interface Recorded {
  readonly labels: object;
  readonly leader: { readonly pid: number; readonly start_ticks: string };
}

const recordOf = async (spec: WorkloadSpec): Promise<Recorded> =>
  JSON.parse(await readFile(`${folderOf(spec)}/record.json`, 'utf8'));

async function changeRecord(spec: WorkloadSpec, change: (record: Recorded) => object): Promise<void> {
  await writeFile(`${folderOf(spec)}/record.json`, JSON.stringify(change(await recordOf(spec))));
}

async function getJson(port: number | null): Promise<{ env: Record<string, string>; cwd: string; pid: number }> {
  let body: unknown;
  await waitFor(
    async () =>
      (body = await fetch(`http://127.0.0.1:${port}/`).then(
        (answer) => answer.json(),
        () => undefined,
      )),
    { what: 'the workload serves' },
  );
  return body as { env: Record<string, string>; cwd: string; pid: number };
}

/** A shell that ignores SIGTERM and whose child, in the same group, does so too. Each writes its pid. */
const STUBBORN = ['/bin/sh', '-c', `trap '' TERM; sleep 600 & echo $! >child; echo $$ >parent; wait`];

describe('ensure', () => {
  test('a service: runs with PORT, INSTANCE_ID, HOME and PATH alone, in its home', async () => {
    const spec = workload(node(SERVER));
    const { port, found } = await ensure(spec);
    const { env, cwd } = await getJson(port);
    const home = `${folderOf(spec)}/home`;
    expect([found, cwd]).toEqual([false, home]);
    expect(env).toEqual({ PORT: String(port), INSTANCE_ID: spec.id, HOME: home, PATH: process.env['PATH'] });
  });

  test('again, by an agent that has started anew: found with the same port, the same process', async () => {
    const spec = workload(node(SERVER));
    const first = await ensure(spec);
    const { pid } = await getJson(first.port);
    expect(await newRuntime().ensure(spec, NEVER)).toEqual({ port: first.port, found: true });
    expect((await getJson(first.port)).pid).toBe(pid);
  });

  test('words with what a shell would read: handed on as they are', async () => {
    const words = ['$HOME', '`id`', '; exit 3', '"', "'", '*', '-n'];
    const print = node('console.log(JSON.stringify(process.argv.slice(1)))', ...words);
    const spec = workload(print, { run: 'once', listens: false });
    await ensure(spec);
    expect(JSON.parse(await eventually(`${folderOf(spec)}/output.log`))).toEqual(words);
  });

  test('what is run: a group and session of its own, nicer, taken first when memory is out, with a bounded data segment', async () => {
    const spec = workload(['/bin/sleep', '600'], { listens: false });
    await ensure(spec);
    const { pid } = (await recordOf(spec)).leader;
    const children = () => readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').then((text) => text.trim().split(' '));
    await waitFor(async () => (await children()).length === 2, { what: 'the workload runs' });
    const [shell] = await children();
    const [sleep = ''] = (await eventually(`/proc/${shell}/task/${shell}/children`)).trim().split(' ');
    const fields = (await readFile(`/proc/${sleep}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
    expect({ group: fields[2], session: fields[3], nice: fields[16] }).toEqual({
      group: String(pid),
      session: String(pid),
      nice: '5',
    });
    expect(await readFile(`/proc/${sleep}/oom_score_adj`, 'utf8')).toBe('500\n');
    expect(await readFile(`/proc/${sleep}/limits`, 'utf8')).toMatch(
      new RegExp(`Max data size +${(64 + 1_024) * 1_024 * 1_024} `),
    );
  });

  test('a database: DATA_DIR that is there; removing it leaves the data', async () => {
    const write = node(
      `require('node:fs').writeFileSync(process.env.DATA_DIR + '/rows', 'kept'); setInterval(() => {}, 1e6)`,
    );
    const spec = workload(write, { id: '70000000-0000-4000-8000-00000000000b', deploymentId: null, keepsData: true });
    await ensure(spec);
    const rows = `${folder.path}/data/databases/${spec.id}/rows`;
    expect(await eventually(rows)).toBe('kept');
    expect(await remove(spec)).toBe(true);
    expect(await readFile(rows, 'utf8')).toBe('kept');
  });

  test('a service that has ended: started again, on its port, its output kept', async () => {
    const spec = workload(['/bin/sh', '-c', 'echo said']);
    const { port } = await ensure(spec);
    await waitFor(async () => (await runtime.look(spec.id)).kind === 'exited', { what: 'it has ended' });
    expect(await ensure(spec)).toEqual({ port, found: false });
    await waitFor(async () => (await readFile(`${folderOf(spec)}/output.log`, 'utf8')) === 'said\nsaid\n', {
      what: 'both outputs',
    });
  });

  test('another command under the same id: the former one is stopped, the new one runs', async () => {
    const former = workload(['/bin/sh', '-c', 'echo $$ >pid; exec sleep 600']);
    await ensure(former);
    const pid = Number(await eventually(`${folderOf(former)}/home/pid`));
    const spec = workload(node(SERVER));
    const { port, found } = await ensure(spec);
    expect([found, await isAlive(pid)]).toEqual([false, false]);
    await getJson(port);
  });

  test('ports of two workloads that do not listen yet: two', async () => {
    const ports = [
      await ensure(workload(['/bin/sleep', '600'])),
      await ensure(workload(['/bin/sleep', '600'], { generation: 2 })),
    ];
    expect(new Set(ports.map(({ port }) => port)).size).toBe(2);
  });

  test('a later generation of the slot is there: superseded, nothing is started', async () => {
    await ensure(workload(['/bin/sleep', '600'], { generation: 2, listens: false }));
    await expect(ensure(workload(node(SERVER)))).rejects.toMatchObject({ name: 'JobFailed', code: 'superseded' });
    expect(await runtime.look(instanceId(1))).toEqual({ kind: 'absent' });
  });

  test('a later generation of another slot: no matter', async () => {
    await ensure(workload(['/bin/sleep', '600'], { id: instanceId(2, 1), generation: 2, listens: false }));
    expect(await ensure(workload(['/bin/sleep', '600'], { listens: false }))).toMatchObject({ found: false });
  });

  test('the same of a later epoch is there: superseded; of an earlier epoch: found', async () => {
    const spec = workload(['/bin/sleep', '600'], { epoch: 2, listens: false });
    await ensure(spec);
    await expect(ensure({ ...spec, epoch: 1 })).rejects.toMatchObject({ code: 'superseded' });
    expect(await ensure({ ...spec, epoch: 3 })).toMatchObject({ found: true });
  });
});

describe('tend', () => {
  const ended = (spec: WorkloadSpec) =>
    waitFor(async () => (await runtime.look(spec.id)).kind === 'exited', { what: 'it has ended' });

  test('a service that has ended: started again by the next agent, on its port; one that runs: left alone', async () => {
    const spec = workload(node(SERVER));
    const { port } = await ensure(spec);
    const { pid } = await getJson(port);
    expect(await runtime.tend(NEVER)).toEqual({ restarted: [], failed: [] });
    process.kill(pid, 'SIGKILL');
    await ended(spec);
    expect(await newRuntime().tend(NEVER)).toEqual({ restarted: [spec.id], failed: [] });
    expect((await getJson(port)).pid).not.toBe(pid);
  });

  test('what runs once, and what is of another node: never', async () => {
    const once = workload(['/bin/true'], { run: 'once', listens: false });
    await ensure(once);
    await ended(once);
    const service = workload(['/bin/true'], { id: instanceId(1, 1), listens: false });
    await ensure(service);
    await ended(service);
    expect(await newRuntime('10000000-0000-4000-8000-00000000000b').tend(NEVER)).toEqual({ restarted: [], failed: [] });
    expect(await runtime.tend(NEVER)).toEqual({ restarted: [service.id], failed: [] });
  });

  test('somebody else has taken its port: not started, said', async () => {
    const spec = workload(['/bin/true']);
    const { port } = await ensure(spec);
    await ended(spec);
    const stranger = createServer();
    await new Promise<void>((resolve) => stranger.listen(port ?? 0, '127.0.0.1', resolve));
    const reason = `its port ${port} is in use by somebody else`;
    expect(await runtime.tend(NEVER)).toEqual({ restarted: [], failed: [{ id: spec.id, reason }] });
    stranger.close();
  });
});

describe('look', () => {
  test.each([0, 7])('ended with %i while no agent was there: exited with it', async (code) => {
    const spec = workload(['/bin/sh', '-c', `exit ${code}`], { listens: false });
    await ensure(spec);
    await waitFor(async () => (await newRuntime().look(spec.id)).kind === 'exited', { what: 'it has ended' });
    expect(await newRuntime().look(spec.id)).toEqual({ kind: 'exited', code });
  });

  test('a program that is not there: exited with 127', async () => {
    const spec = workload(['/nowhere/program'], { listens: false });
    await ensure(spec);
    await waitFor(async () => (await runtime.look(spec.id)).kind === 'exited', { what: 'it has ended' });
    expect(await runtime.look(spec.id)).toEqual({ kind: 'exited', code: 127 });
  });

  test('everything of it killed: exited, nobody saw how', async () => {
    const spec = workload(['/bin/sleep', '600'], { listens: false });
    await ensure(spec);
    process.kill(-(await recordOf(spec)).leader.pid, 'SIGKILL');
    await waitFor(async () => (await runtime.look(spec.id)).kind === 'exited', { what: 'it is gone' });
    expect(await runtime.look(spec.id)).toEqual({ kind: 'exited', code: null });
  });
});

describe('remove', () => {
  test('a service that ends at SIGTERM: its handler runs, everything goes', async () => {
    const said = `${folder.path}/said`;
    const handler = `process.on('SIGTERM', () => { require('fs').writeFileSync('${said}', 'bye'); process.exit(0) }); ${SERVER}`;
    const spec = workload(node(handler));
    const { pid } = await getJson((await ensure(spec)).port);
    expect(await remove(spec)).toBe(true);
    expect([await isAlive(pid), await readFile(said, 'utf8')]).toEqual([false, 'bye']);
    expect(await readdir(`${folder.path}/instances`)).toEqual([]);
  });

  test('one that ignores SIGTERM, with a child: both killed after the grace period', async () => {
    const spec = workload(STUBBORN, { listens: false });
    await ensure(spec);
    const pids = [`${folderOf(spec)}/home/parent`, `${folderOf(spec)}/home/child`].map(eventually);
    const [parent, child] = (await Promise.all(pids)).map(Number);
    const startedMs = performance.now();
    await remove(spec, 300);
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(300);
    expect([await isAlive(parent ?? 0), await isAlive(child ?? 0)]).toEqual([false, false]);
  });

  test('a member that has left the group: ended too', async () => {
    const spec = workload(['/bin/sh', '-c', 'setsid sleep 600 & echo $! >child; exit 0'], { listens: false });
    await ensure(spec);
    const child = Number(await eventually(`${folderOf(spec)}/home/child`));
    await remove(spec);
    expect(await isAlive(child)).toBe(false);
  });

  test('nothing there, and again: false', async () => {
    const spec = workload(node(SERVER));
    expect(await remove(spec)).toBe(false);
    await ensure(spec);
    expect([await remove(spec), await remove(spec)]).toEqual([true, false]);
  });

  test('the signal is aborted meanwhile: stops waiting, the workload is still on record', async () => {
    const spec = workload(STUBBORN, { listens: false });
    await ensure(spec);
    await eventually(`${folderOf(spec)}/home/parent`);
    const stop = new AbortController();
    const removing = runtime.remove(spec, 600_000, stop.signal);
    stop.abort(new Error('told to end'));
    await expect(removing).rejects.toThrow('told to end');
    expect(await runtime.list()).toHaveLength(1);
  });

  test('another generation than the labels say: not_owned, it goes on', async () => {
    const spec = workload(['/bin/sleep', '600'], { listens: false });
    await ensure(spec);
    await expect(remove({ ...spec, generation: 2 })).rejects.toMatchObject({ code: 'not_owned' });
    expect(await runtime.look(spec.id)).toEqual({ kind: 'running' });
  });
});

describe('what is not ours', () => {
  test('a folder without our record: not_owned for ensure and remove, untouched', async () => {
    const spec = workload(node(SERVER));
    await mkdir(folderOf(spec), { recursive: true });
    await writeFile(`${folderOf(spec)}/precious`, 'kept');
    await expect(ensure(spec)).rejects.toMatchObject({ code: 'not_owned' });
    await expect(remove(spec)).rejects.toMatchObject({ code: 'not_owned' });
    expect(await readdir(folderOf(spec))).toEqual(['precious']);
  });

  test('a workload of another node on the same disk: not listed, not_owned, it goes on', async () => {
    const spec = workload(['/bin/sleep', '600'], { listens: false });
    await ensure(spec);
    const other = newRuntime('10000000-0000-4000-8000-00000000000b');
    expect(await other.list()).toEqual([]);
    await expect(other.ensure(spec, NEVER)).rejects.toMatchObject({ code: 'not_owned' });
    await expect(other.remove(spec, 0, NEVER)).rejects.toMatchObject({ code: 'not_owned' });
    expect(await runtime.look(spec.id)).toEqual({ kind: 'running' });
  });

  test.each([
    ['start time', { start_ticks: '1' }],
    ['boot', { boot_id: 'of-another-boot' }],
  ])(
    'a pid on record that another process has by now (another %s): not killed, taken for ended',
    async (_, differing) => {
      const spec = workload(['/bin/true'], { listens: false });
      await ensure(spec);
      const stranger = spawn('/bin/sleep', ['600'], { detached: true, stdio: 'ignore' });
      strangers.push(stranger);
      await once(stranger, 'spawn');
      await waitFor(async () => (await runtime.look(spec.id)).kind === 'exited', { what: 'it has ended' });
      const leader = { ...identifyProcess(stranger.pid ?? 0), ...differing };
      await changeRecord(spec, (record) => ({ ...record, leader }));
      expect(await runtime.look(spec.id)).toMatchObject({ kind: 'exited' });
      expect(await remove(spec)).toBe(true);
      expect(await isAlive(stranger.pid ?? 0)).toBe(true);
    },
  );
});

test('output: bounded, the latest is kept, readable for the agent alone', async () => {
  const flood = node(
    `for (let i = 0; i < 14_000; i += 1) console.log(String(i).padStart(1_023)); console.log('the end')`,
  );
  const spec = workload(flood, { run: 'once', listens: false });
  await ensure(spec);
  await waitFor(
    async () => (await readFile(`${folderOf(spec)}/output.log`, 'utf8').catch(() => '')).endsWith('the end\n'),
    {
      what: 'the last line',
      deadlineMs: 10_000,
    },
  );
  const [now, before] = await Promise.all([
    stat(`${folderOf(spec)}/output.log`),
    stat(`${folderOf(spec)}/output.1.log`),
  ]);
  expect([now.mode & 0o777, now.size <= 5 * 1_024 ** 2, before.size <= 5 * 1_024 ** 2]).toEqual([0o600, true, true]);
});
